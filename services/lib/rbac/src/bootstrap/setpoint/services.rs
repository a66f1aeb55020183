//! The services that are processes of their own, except for the two controllers among them.

use crate::bootstrap::rule::{Table, table};

/// The cluster's DNS, of which all replicas serve.
pub const DNS: &str = "dns";
pub const CONTROLLER_MANAGER: &str = "controller-manager";
/// Each of them works, without an election.
pub const PROXY: &str = "proxy";
/// The role of the informers that the controllers of a process share.
pub const INFORMERS: &str = "informers";

pub fn table() -> Table {
    table! {
        "scheduler" {
            "watch"               "core"                  "namespaces nodes persistentvolumeclaims persistentvolumes \
                                                           pods services";
            "watch"               "policy"                "poddisruptionbudgets";
            "watch"               "storage.k8s.io"        "csinodes storageclasses";
            "create"              "core"                  "pods/binding";
            "update"              "core"                  "pods/status";
            // Those that it preempts.
            "get delete"          "core"                  "pods";
            // Volumes that it reserves, and the node that it selects for a claim.
            "get patch"           "core"                  "persistentvolumeclaims";
            "patch"               "core"                  "persistentvolumes";
            "create patch"        "core"                  "events";
        }

        "dns" {
            // Pods for their names and for search paths, if it is set up so.
            "watch"               "core"                  "namespaces pods services";
            "watch"               "discovery.k8s.io"      "endpointslices";
        }

        "proxy" {
            "watch"               "core"                  "namespaces nodes pods services";
            "watch"               "discovery.k8s.io"      "endpointslices";
            "watch"               "networking.k8s.io"     "networkpolicies";
            // The condition that NetworkPolicies are enforced.
            "get"                 "core"                  "nodes";
            "update"              "core"                  "nodes/status";
            "create patch"        "core"                  "events";
        }

        // Acts as each of its controllers, and as nobody else.
        "controller-manager" {
            "impersonate"         "core"                  "users"
                "system:setpoint:bootstrap-signer-controller \
                 system:setpoint:certificatesigningrequest-controller \
                 system:setpoint:cronjob-controller \
                 system:setpoint:daemonset-controller \
                 system:setpoint:deployment-controller \
                 system:setpoint:disruption-controller \
                 system:setpoint:endpointslice-controller \
                 system:setpoint:garbage-collector-controller \
                 system:setpoint:horizontalpodautoscaler-controller \
                 system:setpoint:job-controller \
                 system:setpoint:legacy-service-account-token-cleaner-controller \
                 system:setpoint:namespace-controller \
                 system:setpoint:node-ipam-controller \
                 system:setpoint:node-lifecycle-controller \
                 system:setpoint:persistentvolume-controller \
                 system:setpoint:persistentvolumeclaim-controller \
                 system:setpoint:podgc-controller \
                 system:setpoint:replicaset-controller \
                 system:setpoint:replication-controller \
                 system:setpoint:resourcequota-controller \
                 system:setpoint:root-ca-certificate-publisher-controller \
                 system:setpoint:service-cidrs-controller \
                 system:setpoint:service-lb-controller \
                 system:setpoint:serviceaccount-controller \
                 system:setpoint:statefulset-controller \
                 system:setpoint:taint-eviction-controller \
                 system:setpoint:token-cleaner-controller";
        }

        "informers" {
            "watch"               "core"                  "endpoints namespaces nodes persistentvolumeclaims \
                                                           persistentvolumes pods replicationcontrollers \
                                                           resourcequotas services";
            "watch"               "apiextensions.k8s.io"  "customresourcedefinitions";
            "watch"               "apps"                  "controllerrevisions daemonsets deployments replicasets \
                                                           statefulsets";
            "watch"               "autoscaling"           "horizontalpodautoscalers";
            "watch"               "batch"                 "cronjobs jobs";
            "watch"               "certificates.k8s.io"   "certificatesigningrequests";
            "watch"               "discovery.k8s.io"      "endpointslices";
            "watch"               "networking.k8s.io"     "networkpolicies servicecidrs";
            "watch"               "policy"                "poddisruptionbudgets";
            "watch"               "storage.k8s.io"        "storageclasses";
        }
    }
}
