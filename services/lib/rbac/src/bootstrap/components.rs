//! Roles for the components of a control plane and for add-ons, and for approving certificates.

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, service_account, user};
use super::rule::{READ, READ_WRITE, Table, table};

pub fn cluster_roles() -> Vec<ClusterRole> {
    [control_plane(), add_ons(), approvers()]
        .into_iter()
        .flatten()
        .map(|(name, rules)| cluster_role(name, rules))
        .collect()
}

/// Returns the bindings to the users of the components. Add-ons and approvers are bound by those who install them.
pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    let manager = user("system:kube-controller-manager");
    let scheduler = user("system:kube-scheduler");
    vec![
        cluster_role_binding("system:kube-controller-manager", vec![manager]),
        cluster_role_binding("system:kube-scheduler", vec![scheduler.clone()]),
        cluster_role_binding("system:volume-scheduler", vec![scheduler]),
        cluster_role_binding("system:kube-dns", vec![service_account("kube-dns")]),
    ]
}

fn control_plane() -> Table {
    table! {
        // Only what the process itself does: each controller writes as its own ServiceAccount.
        "system:kube-controller-manager" {
            "create update patch"  "core events.k8s.io"     "events";
            // Its lease. A name does not restrict creation, since it is not known when that is authorized.
            "create"               "coordination.k8s.io"    "leases";
            "get update"           "coordination.k8s.io"    "leases"  "kube-controller-manager";
            // The identities of the controllers.
            "create"               "core"                   "secrets serviceaccounts";
            "delete"               "core"                   "secrets";
            "get"                  "core"                   "configmaps namespaces secrets serviceaccounts";
            "update"               "core"                   "secrets serviceaccounts";
            "create"               "authentication.k8s.io"  "tokenreviews";
            "create"               "authorization.k8s.io"   "subjectaccessreviews";
            // The informers that all controllers share.
            "list watch"           "*"                      "*";
            "create"               "core"                   "serviceaccounts/token";
        }

        "system:kube-scheduler" {
            "create update patch"          "core events.k8s.io"     "events";
            "create"                       "coordination.k8s.io"    "leases";
            "get list watch update"        "coordination.k8s.io"    "leases"  "kube-scheduler";
            READ_WRITE                     "coordination.k8s.io"    "leasecandidates";
            READ                           "core"                   "nodes";
            // Deletes those that it preempts.
            "get list watch delete"        "core"                   "pods";
            "create"                       "core"                   "bindings pods/binding";
            "update patch"                 "core"                   "pods/status";
            // What selects Pods, to spread them.
            READ                           "core"                   "replicationcontrollers services";
            READ                           "apps extensions"        "replicasets";
            READ                           "apps"                   "statefulsets";
            READ                           "policy"                 "poddisruptionbudgets";
            READ                           "core"                   "persistentvolumeclaims persistentvolumes";
            "create"                       "authentication.k8s.io"  "tokenreviews";
            "create"                       "authorization.k8s.io"   "subjectaccessreviews";
            // How many volumes a Node can take.
            READ                           "storage.k8s.io"         "csinodes";
            READ                           "storage.k8s.io"         "volumeattachments";
            // Selectors of namespaces in affinities.
            READ                           "core"                   "namespaces";
            READ                           "storage.k8s.io"         "csidrivers";
            READ                           "storage.k8s.io"         "csistoragecapacities";
            // Dynamic allocation of devices.
            READ                           "resource.k8s.io"        "deviceclasses";
            "get list watch update patch"  "resource.k8s.io"        "resourceclaims";
            "get list watch update patch"  "resource.k8s.io"        "resourceclaims/status";
            "update"                       "core"                   "pods/finalizers";
            READ                           "resource.k8s.io"        "resourceslices";
            "create delete"                "resource.k8s.io"        "resourceclaims";
            "update patch"                 "resource.k8s.io"        "resourceclaims/binding";
        }

        // The part of the scheduler that binds claims to volumes.
        "system:volume-scheduler" {
            "get list watch update patch"  "core"            "persistentvolumes";
            READ                           "storage.k8s.io"  "storageclasses";
            "get list watch update patch"  "core"            "persistentvolumeclaims";
        }
    }
}

fn add_ons() -> Table {
    table! {
        "system:kube-dns" {
            "list watch"  "core"  "endpoints services";
        }

        // Sees whether the services exist that it forwards to.
        "system:kube-aggregator" {
            READ  "core"  "endpoints services";
        }

        // For API servers and proxies that leave authentication and authorization to this one.
        "system:auth-delegator" {
            "create"  "authentication.k8s.io"  "tokenreviews";
            "create"  "authorization.k8s.io"   "subjectaccessreviews";
        }

        "system:heapster" {
            READ  "core"        "events namespaces nodes pods";
            READ  "extensions"  "deployments";
        }

        // For provisioners outside of the controllers. They lock a claim by an annotation.
        "system:persistent-volume-provisioner" {
            "get list watch create delete"  "core"                "persistentvolumes";
            "get list watch update"         "core"                "persistentvolumeclaims";
            READ                            "storage.k8s.io"      "storageclasses";
            // Whether provisioning has succeeded is told by Events.
            "watch"                         "core"                "events";
            "create update patch"           "core events.k8s.io"  "events";
        }
    }
}

/// Returns the roles that approve the requests for certificates of one signer, whose name is that of an object.
fn approvers() -> Table {
    table! {
        "system:certificates.k8s.io:legacy-unknown-approver" {
            "approve"  "certificates.k8s.io"  "signers"  "kubernetes.io/legacy-unknown";
        }
        "system:certificates.k8s.io:kubelet-serving-approver" {
            "approve"  "certificates.k8s.io"  "signers"  "kubernetes.io/kubelet-serving";
        }
        "system:certificates.k8s.io:kube-apiserver-client-approver" {
            "approve"  "certificates.k8s.io"  "signers"  "kubernetes.io/kube-apiserver-client";
        }
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver" {
            "approve"  "certificates.k8s.io"  "signers"  "kubernetes.io/kube-apiserver-client-kubelet";
        }
    }
}
