//! Controllers of workloads, and those that scale, evict and remove Pods.
//!
//! `update` of the finalizers of an object is what makes it the owner of others whose deletion it waits for.

use crate::bootstrap::rule::{READ, Table, table};

pub fn controllers() -> Table {
    let mut controllers = owners_of_pods();
    controllers.extend(around_pods());
    controllers
}

fn owners_of_pods() -> Table {
    table! {
        "cronjob-controller" {
            "get list watch update"                      "batch"               "cronjobs";
            "get list watch create update patch delete"  "batch"               "jobs";
            "update"                                     "batch"               "cronjobs/status";
            "update"                                     "batch"               "cronjobs/finalizers";
            "list watch delete"                          "core"                "pods";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "daemon-set-controller" {
            READ                                         "apps extensions"     "daemonsets";
            "update"                                     "apps extensions"     "daemonsets/status";
            "update"                                     "apps extensions"     "daemonsets/finalizers";
            "list watch"                                 "core"                "nodes";
            "list watch create patch delete"             "core"                "pods";
            "create"                                     "core"                "pods/binding";
            "get list watch create update patch delete"  "apps"                "controllerrevisions";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "deployment-controller" {
            "get list watch update"                      "apps extensions"     "deployments";
            "update"                                     "apps extensions"     "deployments/status";
            "update"                                     "apps extensions"     "deployments/finalizers";
            "get list watch create update patch delete"  "apps extensions"     "replicasets";
            "get list watch update"                      "core"                "pods";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "job-controller" {
            "get list watch update patch"                "batch"               "jobs";
            "update"                                     "batch"               "jobs/status";
            "update"                                     "batch"               "jobs/finalizers";
            "list watch create patch delete"             "core"                "pods";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "replicaset-controller" {
            "get list watch update"                      "apps extensions"     "replicasets";
            "update"                                     "apps extensions"     "replicasets/status";
            "update"                                     "apps extensions"     "replicasets/finalizers";
            "list watch create patch delete"             "core"                "pods";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "replication-controller" {
            "get list watch update"                      "core"                "replicationcontrollers";
            "update"                                     "core"                "replicationcontrollers/status";
            "update"                                     "core"                "replicationcontrollers/finalizers";
            "list watch create patch delete"             "core"                "pods";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "statefulset-controller" {
            "list watch"                                 "core"                "pods";
            READ                                         "apps"                "statefulsets";
            "update"                                     "apps"                "statefulsets/status";
            "update"                                     "apps"                "statefulsets/finalizers";
            "get create update patch delete"             "core"                "pods";
            "get list watch create update patch delete"  "apps"                "controllerrevisions";
            "get list watch create"                      "core"                "persistentvolumeclaims";
            // Claims that go with the Pod or with the StatefulSet, which become their owners.
            "update delete"                              "core"                "persistentvolumeclaims";
            "update"                                     "core"                "pods/finalizers";
            "create update patch"                        "core events.k8s.io"  "events";
        }
    }
}

fn around_pods() -> Table {
    table! {
        "device-taint-eviction-controller" {
            "get list watch delete"         "core"                   "pods";
            "update patch"                  "core"                   "pods/status";
            READ                            "resource.k8s.io"        "resourceclaims";
            READ                            "resource.k8s.io"        "resourceslices";
            READ                            "resource.k8s.io"        "deviceclasses";
            "create update patch"           "core events.k8s.io"     "events";
        }
        "disruption-controller" {
            READ                            "apps extensions"        "deployments";
            READ                            "apps extensions"        "replicasets";
            READ                            "core"                   "replicationcontrollers";
            READ                            "policy"                 "poddisruptionbudgets";
            READ                            "apps"                   "statefulsets";
            "update"                        "policy"                 "poddisruptionbudgets/status";
            "update patch"                  "core"                   "pods/status";
            // Of any kind, for how many Pods its owner should have.
            "get"                           "*"                      "*/scale";
            "create update patch"           "core events.k8s.io"     "events";
        }
        "horizontal-pod-autoscaler" {
            READ                            "autoscaling"            "horizontalpodautoscalers";
            "update"                        "autoscaling"            "horizontalpodautoscalers/status";
            "get update"                    "*"                      "*/scale";
            "list watch"                    "core"                   "pods";
            "list watch"                    "metrics.k8s.io"         "pods";
            READ                            "custom.metrics.k8s.io"  "*";
            READ                            "external.metrics.k8s.io"  "*";
            "create update patch"           "core events.k8s.io"     "events";
        }
        "pod-garbage-collector" {
            "list watch delete"             "core"                   "pods";
            READ                            "core"                   "nodes";
            "patch"                         "core"                   "pods/status";
        }
        "resource-claim-controller" {
            READ                            "core"                   "pods";
            "update"                        "core"                   "pods/finalizers";
            "get list watch create delete"  "resource.k8s.io"        "resourceclaims";
            "update patch"                  "resource.k8s.io"        "resourceclaims resourceclaims/status";
            "update patch"                  "core"                   "pods/status";
            "create update patch"           "core events.k8s.io"     "events";
            "update patch"                  "resource.k8s.io"        "resourceclaims/binding";
        }
        "ttl-after-finished-controller" {
            "get list watch delete"         "batch"                  "jobs";
            "create update patch"           "core events.k8s.io"     "events";
        }
    }
}
