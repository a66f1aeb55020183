//! Controllers of namespaces, nodes, owners, quotas, and of identities and permissions.

use crate::bootstrap::rule::{READ, Table, table};

pub fn controllers() -> Table {
    let mut controllers = objects_and_nodes();
    controllers.extend(identities());
    controllers
}

fn objects_and_nodes() -> Table {
    table! {
        // Deletes objects of any kind, and clears the references to owners that are gone.
        "generic-garbage-collector" {
            "get list watch update patch delete"         "*"                   "*";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "namespace-controller" {
            "get list watch delete"                      "core"                "namespaces";
            "update"                                     "core"                "namespaces/finalize namespaces/status";
            // Empties a namespace, whatever is in it.
            "get list watch delete deletecollection"     "*"                   "*";
        }
        "node-controller" {
            "get list watch update patch delete"         "core"                "nodes";
            "update patch"                               "core"                "nodes/status";
            "update patch"                               "core"                "pods/status";
            "get list watch delete"                      "core"                "pods";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        // Counts objects of any kind.
        "resourcequota-controller" {
            "list watch"                                 "*"                   "*";
            "update"                                     "core"                "resourcequotas/status";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "ttl-controller" {
            "list watch update patch"                    "core"                "nodes";
            "create update patch"                        "core events.k8s.io"  "events";
        }
        "validatingadmissionpolicy-status-controller" {
            READ                "admissionregistration.k8s.io"  "validatingadmissionpolicies";
            "get update patch"  "admissionregistration.k8s.io"  "validatingadmissionpolicies/status";
            "create update patch"                        "core events.k8s.io"  "events";
        }
    }
}

fn identities() -> Table {
    table! {
        "certificate-controller" {
            "get list watch delete"  "certificates.k8s.io"   "certificatesigningrequests";
            "update"                 "certificates.k8s.io"   "certificatesigningrequests/approval \
                                                              certificatesigningrequests/status";
            // It approves the certificates of nodes only, and signs all that are approved.
            "approve"                "certificates.k8s.io"   "signers"  "kubernetes.io/kube-apiserver-client-kubelet";
            "sign"                   "certificates.k8s.io"   "signers"  "kubernetes.io/kube-apiserver-client \
                                                                         kubernetes.io/kube-apiserver-client-kubelet \
                                                                         kubernetes.io/kubelet-serving \
                                                                         kubernetes.io/legacy-unknown";
            "create"                 "authorization.k8s.io"  "subjectaccessreviews";
            "create update patch"    "core events.k8s.io"    "events";
        }
        // Writes rules that it does not have itself into roles that aggregate them.
        "clusterrole-aggregation-controller" {
            "escalate get list watch update patch"  "rbac.authorization.k8s.io"  "clusterroles";
        }
        "legacy-service-account-token-cleaner" {
            "get"           "core"  "configmaps"  "kube-apiserver-legacy-service-account-token-tracking";
            "patch delete"  "core"  "secrets";
        }
        "root-ca-cert-publisher" {
            "create update"          "core"                  "configmaps";
            "create update patch"    "core events.k8s.io"    "events";
        }
        "service-account-controller" {
            "create"                 "core"                  "serviceaccounts";
            "create update patch"    "core events.k8s.io"    "events";
        }
    }
}
