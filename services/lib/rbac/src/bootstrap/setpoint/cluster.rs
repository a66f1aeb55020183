//! Controllers of nodes, namespaces, owners, quotas, volumes, endpoints, and of identities.

use crate::bootstrap::rule::{Table, table};

pub fn table() -> Table {
    [
        nodes(),
        objects_of_all_kinds(),
        services_and_volumes(),
        identities(),
    ]
    .concat()
}

fn nodes() -> Table {
    table! {
        "node-ipam-controller" {
            "patch"             "core"  "nodes";
            "create patch"      "core"  "events";
        }
        "node-lifecycle-controller" {
            "patch"             "core"  "nodes nodes/status";
            "get"               "core"  "pods";
            "update"            "core"  "pods/status";
            "create patch"      "core"  "events";
        }
        "taint-eviction-controller" {
            "get"               "core"  "nodes";
            "get delete"        "core"  "pods";
            "update"            "core"  "pods/status";
            "create patch"      "core"  "events";
        }
        "podgc-controller" {
            "get"               "core"  "nodes";
            "get delete"        "core"  "pods";
            "update"            "core"  "pods/status";
        }
    }
}

fn objects_of_all_kinds() -> Table {
    table! {
        // Deletes objects of any kind, and clears the references to owners that are gone.
        "garbage-collector-controller" {
            "get list watch patch delete"  "*"     "*";
            "create patch"                 "core"  "events";
        }
        // Empties a namespace, whatever is in it.
        "namespace-controller" {
            "list delete"                  "*"     "*";
            "get"                          "core"  "namespaces";
            "update"                       "core"  "namespaces/finalize namespaces/status";
        }
        // Counts objects of any kind.
        "resourcequota-controller" {
            "list watch"                   "*"     "*";
            "get"                          "core"  "resourcequotas";
            "update"                       "core"  "resourcequotas/status";
        }
    }
}

fn services_and_volumes() -> Table {
    table! {
        "endpointslice-controller" {
            "get create update delete"  "discovery.k8s.io"  "endpointslices";
            "create update"             "core"              "endpoints";
            // A Service owns its slices, and its deletion waits for theirs.
            "update"                    "core"              "services/finalizers";
            "create patch"              "core"              "events";
        }
        "service-cidrs-controller" {
            "patch"                     "networking.k8s.io" "servicecidrs";
            "update"                    "networking.k8s.io" "servicecidrs/status";
            // Whether a Service has an address of a range that is being deleted.
            "list"                      "core"              "services";
        }
        "service-lb-controller" {
            // The finalizer, and the addresses in the status.
            "patch"                     "core"              "services";
            "update"                    "core"              "services/status";
            "create patch"              "core"              "events";
        }
        "persistentvolumeclaim-controller" {
            "get patch"                 "core"              "persistentvolumeclaims";
            "update"                    "core"              "persistentvolumeclaims/status";
            "get create patch"          "core"              "persistentvolumes";
            // Whether a Pod uses a claim that is being deleted.
            "list"                      "core"              "pods";
            "create patch"              "core"              "events";
        }
        "persistentvolume-controller" {
            "patch delete"              "core"              "persistentvolumes";
            "update"                    "core"              "persistentvolumes/status";
            "get"                       "core"              "persistentvolumeclaims";
            // Whether the node of a volume is gone.
            "get"                       "core"              "nodes";
            "create patch"              "core"              "events";
        }
    }
}

fn identities() -> Table {
    table! {
        "serviceaccount-controller" {
            "watch"         "core"                   "serviceaccounts"  "default";
            "create"        "core"                   "serviceaccounts";
        }
        "root-ca-certificate-publisher-controller" {
            "watch update"  "core"                   "configmaps"       "kube-root-ca.crt";
            "create"        "core"                   "configmaps";
        }
        // Tokens cannot be told from other Secrets by a rule; upstream's controller may change all of them, too.
        "legacy-service-account-token-cleaner-controller" {
            "watch patch delete"  "core"             "secrets";
            "watch"         "core"                   "serviceaccounts";
            // Whether a Pod names a token.
            "list"          "core"                   "pods";
        }
        "certificatesigningrequest-controller" {
            "get delete"    "certificates.k8s.io"    "certificatesigningrequests";
            "update"        "certificates.k8s.io"    "certificatesigningrequests/approval \
                                                      certificatesigningrequests/status";
            // It approves the certificates of nodes only, and signs all that are approved.
            "approve"       "certificates.k8s.io"    "signers"          "kubernetes.io/kube-apiserver-client-kubelet \
                                                                         kubernetes.io/kubelet-serving";
            "sign"          "certificates.k8s.io"    "signers"          "kubernetes.io/kube-apiserver-client \
                                                                         kubernetes.io/kube-apiserver-client-kubelet \
                                                                         kubernetes.io/kubelet-serving \
                                                                         kubernetes.io/legacy-unknown";
            "create"        "authorization.k8s.io"   "subjectaccessreviews";
            // The client certificate of a node has the UID of its Node.
            "create"        "core"                   "nodes";
        }
    }
}
