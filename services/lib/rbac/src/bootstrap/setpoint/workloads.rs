//! Controllers of workloads, and those that scale and protect them.
//!
//! `update` of the finalizers of an object is what makes it the owner of others whose deletion it waits for: the
//! admission plugin OwnerReferencesPermissionEnforcement asks for it.

use crate::bootstrap::rule::{Table, table};

pub fn table() -> Table {
    let mut table = owners_of_pods();
    table.extend(around_workloads());
    table
}

fn owners_of_pods() -> Table {
    table! {
        "deployment-controller" {
            // It is a process of its own by default, as is the next one.
            "watch"                           "apps"         "deployments replicasets";
            "get"                             "apps"         "deployments";
            "update"                          "apps"         "deployments/finalizers deployments/status";
            "get create patch delete"         "apps"         "replicasets";
            "create patch"                    "core"         "events";
        }
        "replicaset-controller" {
            "watch"                           "apps"         "replicasets";
            "watch"                           "core"         "pods";
            "get"                             "apps"         "replicasets";
            "update"                          "apps"         "replicasets/finalizers replicasets/status";
            "get create patch delete"         "core"         "pods";
            "create patch"                    "core"         "events";
        }
        "replication-controller" {
            "get"                             "core"         "replicationcontrollers";
            "update"                          "core"         "replicationcontrollers/finalizers \
                                                              replicationcontrollers/status";
            "get create patch delete"         "core"         "pods";
            "create patch"                    "core"         "events";
        }
        "statefulset-controller" {
            "get"                             "apps"         "statefulsets";
            "update"                          "apps"         "statefulsets/finalizers statefulsets/status";
            "get create update patch delete"  "core"         "pods";
            "get create patch"                "core"         "persistentvolumeclaims";
            // A Pod becomes the owner of its claims, if they go with it.
            "update"                          "core"         "pods/finalizers";
            "get create update patch delete"  "apps"         "controllerrevisions";
            "create patch"                    "core"         "events";
        }
        "daemonset-controller" {
            "get"                             "apps"         "daemonsets";
            "update"                          "apps"         "daemonsets/finalizers daemonsets/status";
            "get create patch delete"         "core"         "pods";
            // Whether the node of a Pod is gone.
            "get"                             "core"         "nodes";
            "get create update patch delete"  "apps"         "controllerrevisions";
            "create patch"                    "core"         "events";
        }
        "job-controller" {
            "get delete"                      "batch"        "jobs";
            "update"                          "batch"        "jobs/finalizers jobs/status";
            "get create patch delete"         "core"         "pods";
            "create patch"                    "core"         "events";
        }
        "cronjob-controller" {
            "update"                          "batch"        "cronjobs/finalizers cronjobs/status";
            "get create delete"               "batch"        "jobs";
            "create patch"                    "core"         "events";
        }
    }
}

fn around_workloads() -> Table {
    table! {
        "horizontalpodautoscaler-controller" {
            "update"        "autoscaling"              "horizontalpodautoscalers/status";
            // Of any kind.
            "get update"    "*"                        "*/scale";
            "list"          "metrics.k8s.io"           "pods";
            "get"           "custom.metrics.k8s.io"    "*";
            "get"           "external.metrics.k8s.io"  "*";
            "create patch"  "core"                     "events";
        }
        "disruption-controller" {
            "update"        "policy"                   "poddisruptionbudgets/status";
            // For how many Pods an owner should have, which may be of any kind.
            "get"           "core"                     "pods";
            "get"           "apps"                     "replicasets";
            "get"           "*"                        "*/scale";
            "create patch"  "core"                     "events";
        }
    }
}
