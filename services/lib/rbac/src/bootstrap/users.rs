//! Roles for people: `cluster-admin`, and `admin`, `edit` and `view`, which are granted in a namespace.
//!
//! `admin` contains `edit`, which contains `view`. All three have no rules of their own: they collect those of the
//! roles with a label, so that an extension adds its kinds to them by a role of its own.

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{aggregate, aggregated_to, cluster_role, cluster_role_binding, group};
use super::rule::{READ, READ_WRITE, Table, WRITE, table};

pub fn cluster_roles() -> Vec<ClusterRole> {
    let unlimited = unlimited().into_iter();
    let aggregates = [
        aggregate("admin"),
        aggregated_to("admin", aggregate("edit")),
        aggregated_to("edit", aggregate("view")),
    ];
    let aggregated = aggregated().into_iter().map(|(to, rules)| {
        let name = format!("system:aggregate-to-{to}");
        aggregated_to(to, cluster_role(&name, rules))
    });
    unlimited
        .map(|(name, rules)| cluster_role(name, rules))
        .chain(aggregates)
        .chain(aggregated)
        .collect()
}

pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    vec![cluster_role_binding(
        "cluster-admin",
        vec![group("system:masters")],
    )]
}

fn unlimited() -> Table {
    table! {
        "cluster-admin" {
            "*"  "*"    "*";
            "*"  paths  "*";
        }
    }
}

/// Returns what each aggregate role adds to the one that it contains.
fn aggregated() -> Table {
    table! {
        // Grants permissions, but nobody grants what they do not have.
        "admin" {
            "create"    "authorization.k8s.io"       "localsubjectaccessreviews";
            READ_WRITE  "rbac.authorization.k8s.io"  "roles rolebindings";
        }

        // All that users do in a namespace. Not written are what limits the namespace (quotas, limits), status, and
        // endpoints, which would lead traffic of other users into foreign namespaces (CVE-2021-25740).
        "edit" {
            // Read here and not by `view`, since each of them gives the powers of a Pod or of a ServiceAccount.
            READ           "core"  "pods/attach pods/exec pods/portforward pods/proxy services/proxy secrets";
            "impersonate"  "core"  "serviceaccounts";

            WRITE       "core"                 "pods pods/attach pods/exec pods/portforward pods/proxy";
            "create"    "core"                 "pods/eviction";
            WRITE       "core"                 "configmaps persistentvolumeclaims secrets serviceaccounts services \
                                                services/proxy replicationcontrollers replicationcontrollers/scale";
            "create"    "core"                 "serviceaccounts/token";
            WRITE       "core events.k8s.io"   "events";
            WRITE       "apps"                 "daemonsets deployments deployments/rollback deployments/scale \
                                                replicasets replicasets/scale statefulsets statefulsets/scale";
            WRITE       "autoscaling"          "horizontalpodautoscalers";
            WRITE       "batch"                "cronjobs jobs";
            WRITE       "extensions"           "daemonsets deployments deployments/rollback deployments/scale \
                                                replicasets replicasets/scale replicationcontrollers/scale \
                                                ingresses networkpolicies";
            WRITE       "policy"               "poddisruptionbudgets";
            WRITE       "networking.k8s.io"    "ingresses networkpolicies";
            READ_WRITE  "coordination.k8s.io"  "leases";
            WRITE       "resource.k8s.io"      "resourceclaims resourceclaimtemplates";
        }

        // What can be read without gaining powers by it.
        "view" {
            READ  "core"                "pods services services/status endpoints configmaps serviceaccounts \
                                         persistentvolumeclaims persistentvolumeclaims/status \
                                         replicationcontrollers replicationcontrollers/scale";
            READ  "core"                "bindings limitranges namespaces/status pods/log pods/status \
                                         replicationcontrollers/status resourcequotas resourcequotas/status";
            // Granted in a namespace, this is for that namespace alone: whether it can be read tells who has access.
            READ  "core"                "namespaces";
            READ  "core events.k8s.io"  "events";
            READ  "discovery.k8s.io"    "endpointslices";
            READ  "apps"                "controllerrevisions daemonsets daemonsets/status \
                                         deployments deployments/scale deployments/status \
                                         replicasets replicasets/scale replicasets/status \
                                         statefulsets statefulsets/scale statefulsets/status";
            READ  "autoscaling"         "horizontalpodautoscalers horizontalpodautoscalers/status";
            READ  "batch"               "cronjobs cronjobs/status jobs jobs/status";
            READ  "extensions"          "daemonsets daemonsets/status \
                                         deployments deployments/scale deployments/status \
                                         replicasets replicasets/scale replicasets/status \
                                         replicationcontrollers/scale ingresses ingresses/status networkpolicies";
            READ  "policy"              "poddisruptionbudgets poddisruptionbudgets/status";
            READ  "networking.k8s.io"   "ingresses ingresses/status networkpolicies";
            READ  "resource.k8s.io"     "resourceclaims resourceclaims/status resourceclaimtemplates";
        }
    }
}
