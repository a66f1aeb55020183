//! Roles for nodes, for what runs on each of them, and for access to their API.

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, user};
use super::rule::{READ, Table, table};

pub fn cluster_roles() -> Vec<ClusterRole> {
    [kubelet(), certificates(), on_each_node()]
        .into_iter()
        .flatten()
        .map(|(name, rules)| cluster_role(name, rules))
        .collect()
}

pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    vec![
        // Without subjects, so that those of old versions are removed: nodes have their rights from the node
        // authorizer, which knows what each of them needs.
        cluster_role_binding("system:node", Vec::new()),
        cluster_role_binding("system:node-proxier", vec![user("system:kube-proxy")]),
    ]
}

fn kubelet() -> Table {
    table! {
        // The most that any node may do. The node authorizer and the admission plugin NodeRestriction narrow it to the
        // node itself and its Pods.
        "system:node" {
            "create"                          "authentication.k8s.io"  "tokenreviews";
            "create"                          "authorization.k8s.io"   "subjectaccessreviews localsubjectaccessreviews";
            // Variables of containers name the services.
            READ                              "core"                   "services";
            "create get list watch"           "core"                   "nodes";
            "update patch"                    "core"                   "nodes/status";
            "update patch"                    "core"                   "nodes";
            "create update patch"             "core events.k8s.io"     "events";
            READ                              "core"                   "pods";
            // Mirrors of static Pods.
            "create delete"                   "core"                   "pods";
            "update patch"                    "core"                   "pods/status";
            "create"                          "core"                   "pods/eviction";
            READ                              "core"                   "configmaps secrets";
            "get"                             "core"                   "persistentvolumeclaims persistentvolumes";
            "get"                             "core"                   "endpoints";
            // Rotation of its own certificate.
            "create get list watch"           "certificates.k8s.io"    "certificatesigningrequests";
            "get create update patch delete"  "coordination.k8s.io"    "leases";
            "get"                             "storage.k8s.io"         "volumeattachments";
            "create"                          "core"                   "serviceaccounts/token";
            "get update patch"                "core"                   "persistentvolumeclaims/status";
            READ                              "storage.k8s.io"         "csidrivers";
            "get create update patch delete"  "storage.k8s.io"         "csinodes";
            READ                              "node.k8s.io"            "runtimeclasses";
            "get"                             "resource.k8s.io"        "resourceclaims";
            "deletecollection"                "resource.k8s.io"        "resourceslices";
            // Tokens for registries of images.
            "get"                             "core"                   "serviceaccounts";
        }

        // Everything that nodes serve.
        "system:kubelet-api-admin" {
            READ     "core"  "nodes";
            "proxy"  "core"  "nodes";
            "*"      "core"  "nodes/log nodes/metrics nodes/proxy nodes/stats";
            "*"      "core"  "nodes/configz nodes/healthz nodes/pods";
        }
    }
}

fn certificates() -> Table {
    table! {
        // For tokens with which a new machine asks for its first certificate.
        "system:node-bootstrapper" {
            "create get list watch"  "certificates.k8s.io"  "certificatesigningrequests";
        }

        // Requests of users with these roles are approved: for a certificate of any node, and for the next one of the
        // node that asks.
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient" {
            "create"  "certificates.k8s.io"  "certificatesigningrequests/nodeclient";
        }
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient" {
            "create"  "certificates.k8s.io"  "certificatesigningrequests/selfnodeclient";
        }
    }
}

fn on_each_node() -> Table {
    table! {
        // kube-proxy.
        "system:node-proxier" {
            "list watch"           "core"                "endpoints services";
            READ                   "core"                "nodes";
            "create update patch"  "core events.k8s.io"  "events";
            "list watch"           "networking.k8s.io"   "servicecidrs";
            "list watch"           "discovery.k8s.io"    "endpointslices";
        }

        "system:node-problem-detector" {
            "get"                  "core"                "nodes";
            "patch"                "core"                "nodes/status";
            "create update patch"  "core events.k8s.io"  "events";
        }
    }
}
