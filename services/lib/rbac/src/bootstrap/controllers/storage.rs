//! Controllers of volumes and claims.

use crate::bootstrap::rule::{READ, Table, table};

pub fn controllers() -> Table {
    table! {
        "attachdetach-controller" {
            "list watch"                           "core"                "persistentvolumes persistentvolumeclaims";
            READ                                   "core"                "nodes";
            "update patch"                         "core"                "nodes/status";
            "list watch"                           "core"                "pods";
            "create update patch"                  "core events.k8s.io"  "events";
            "get list watch create delete"         "storage.k8s.io"      "volumeattachments";
            READ                                   "storage.k8s.io"      "csidrivers";
            READ                                   "storage.k8s.io"      "csinodes";
        }
        "ephemeral-volume-controller" {
            READ                                   "core"                "pods";
            // The Pod owns the claims that are made for it.
            "update"                               "core"                "pods/finalizers";
            "get list watch create"                "core"                "persistentvolumeclaims";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "expand-controller" {
            "get list watch update patch"          "core"                "persistentvolumes";
            "update patch"                         "core"                "persistentvolumeclaims/status";
            READ                                   "core"                "persistentvolumeclaims";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "persistent-volume-binder" {
            "get list watch create update delete"  "core"                "persistentvolumes";
            "update"                               "core"                "persistentvolumes/status";
            "get list watch update"                "core"                "persistentvolumeclaims";
            "update"                               "core"                "persistentvolumeclaims/status";
            // Pods that recycle volumes, whose Events tell how it goes.
            "get list watch create delete"         "core"                "pods";
            READ                                   "storage.k8s.io"      "storageclasses";
            "list watch"                           "core"                "nodes";
            "create update patch"                  "core events.k8s.io"  "events";
            "watch"                                "core"                "events";
        }
        "pv-protection-controller" {
            "get list watch update"                "core"                "persistentvolumes";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "pvc-protection-controller" {
            "get list watch update"                "core"                "persistentvolumeclaims";
            "update"                               "core"                "persistentvolumeclaims/status";
            READ                                   "core"                "pods";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "selinux-warning-controller" {
            "create update patch"                  "core events.k8s.io"  "events";
            READ                                   "core"                "persistentvolumes";
            READ                                   "core"                "persistentvolumeclaims";
            READ                                   "core"                "pods";
            READ                                   "storage.k8s.io"      "csidrivers";
        }
        "volumeattributesclass-protection-controller" {
            READ                                   "core"                "persistentvolumeclaims";
            READ                                   "core"                "persistentvolumes";
            "get list watch update"                "storage.k8s.io"      "volumeattributesclasses";
            "create update patch"                  "core events.k8s.io"  "events";
        }
    }
}
