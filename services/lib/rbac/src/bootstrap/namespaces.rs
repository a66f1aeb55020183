//! Roles and bindings in `kube-system` and `kube-public`.

use setpoint_proto::rbac::{Role, RoleBinding};

use super::object::{KUBE_SYSTEM, role, role_binding, service_account, user};
use super::rule::{READ, Table, table};

const KUBE_PUBLIC: &str = "kube-public";

pub fn roles() -> Vec<Role> {
    let in_namespace = |namespace, table: Table| {
        let rows = table.into_iter();
        rows.map(move |(name, rules)| role(namespace, name, rules))
    };
    in_namespace(KUBE_SYSTEM, system())
        .chain(in_namespace(KUBE_PUBLIC, public()))
        .collect()
}

pub fn role_bindings() -> Vec<RoleBinding> {
    let manager = user("system:kube-controller-manager");
    let scheduler = user("system:kube-scheduler");
    let signer = service_account("bootstrap-signer");

    let reader = "extension-apiserver-authentication-reader";
    let mut components = role_binding(
        KUBE_SYSTEM,
        reader,
        vec![manager.clone(), scheduler.clone()],
    );
    // Administrators bind further users of this role, under other names.
    components.metadata.name = format!("system::{reader}");
    vec![
        components,
        role_binding(
            KUBE_SYSTEM,
            "system::leader-locking-kube-controller-manager",
            vec![
                manager,
                service_account("kube-controller-manager"),
                service_account("leader-election-controller"),
            ],
        ),
        role_binding(
            KUBE_SYSTEM,
            "system::leader-locking-kube-scheduler",
            vec![scheduler, service_account("kube-scheduler")],
        ),
        role_binding(
            KUBE_SYSTEM,
            "system:controller:bootstrap-signer",
            vec![signer.clone()],
        ),
        role_binding(
            KUBE_SYSTEM,
            "system:controller:cloud-provider",
            vec![service_account("cloud-provider")],
        ),
        role_binding(
            KUBE_SYSTEM,
            "system:controller:token-cleaner",
            vec![service_account("token-cleaner")],
        ),
        role_binding(
            KUBE_PUBLIC,
            "system:controller:bootstrap-signer",
            vec![signer],
        ),
    ]
}

fn system() -> Table {
    table! {
        // How extension API servers authenticate what the aggregator forwards to them.
        "extension-apiserver-authentication-reader" {
            READ  "core"  "configmaps"  "extension-apiserver-authentication";
        }
        // Signs by bootstrap tokens, which are secrets of this namespace.
        "system:controller:bootstrap-signer" {
            READ  "core"  "secrets";
        }
        "system:controller:cloud-provider" {
            "get list watch create"  "core"  "configmaps";
        }
        "system:controller:token-cleaner" {
            "get list watch delete"  "core"                "secrets";
            "create update patch"    "core events.k8s.io"  "events";
        }
        "system::leader-locking-kube-controller-manager" {
            "get list watch create update"  "coordination.k8s.io"  "leases";
            "get list watch create update"  "coordination.k8s.io"  "leasecandidates";
        }
        "system::leader-locking-kube-scheduler" {
            "get list watch create update"  "coordination.k8s.io"  "leases";
            "get list watch create update"  "coordination.k8s.io"  "leasecandidates";
        }
    }
}

fn public() -> Table {
    table! {
        "system:controller:bootstrap-signer" {
            READ                   "core"                "configmaps";
            "update"               "core"                "configmaps"  "cluster-info";
            "create update patch"  "core events.k8s.io"  "events";
        }
    }
}
