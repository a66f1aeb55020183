//! Controllers of Services, their endpoints and their addresses.

use crate::bootstrap::rule::{READ, Table, table};

pub fn controllers() -> Table {
    table! {
        "endpoint-controller" {
            READ                                   "core"                "pods services";
            "get list watch create update delete"  "core"                "endpoints";
            "create"                               "core"                "endpoints/restricted";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "endpointslice-controller" {
            READ                                   "core"                "nodes pods services";
            // A Service owns its slices, and its deletion waits for theirs.
            "update"                               "core"                "services/finalizers";
            "get list watch create update delete"  "discovery.k8s.io"    "endpointslices";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "endpointslicemirroring-controller" {
            READ                                   "core"                "endpoints services";
            "update"                               "core"                "services/finalizers";
            "update"                               "core"                "endpoints/finalizers";
            "get list watch create update delete"  "discovery.k8s.io"    "endpointslices";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "route-controller" {
            "list watch"                           "core"                "nodes";
            "patch"                                "core"                "nodes/status";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "service-cidrs-controller" {
            "get list watch update patch"          "networking.k8s.io"   "servicecidrs";
            "update patch"                         "networking.k8s.io"   "servicecidrs/finalizers";
            "update patch"                         "networking.k8s.io"   "servicecidrs/status";
            READ                                   "networking.k8s.io"   "ipaddresses";
            "create update patch"                  "core events.k8s.io"  "events";
        }
        "service-controller" {
            READ                                   "core"                "services";
            "update patch"                         "core"                "services/status";
            "list watch"                           "core"                "nodes";
            "create update patch"                  "core events.k8s.io"  "events";
        }
    }
}
