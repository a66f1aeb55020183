//! Roles in namespaces: for the Leases of elections, replicas and nodes, for the CA that signs certificates, for
//! bootstrap tokens and tokens in Secrets, for the cluster's DNS, and for the addresses of gateways.

use setpoint_model::users::{NODES, SERVICES, SIMULATED_NODES, of_service};
use setpoint_model::{bootstrap_token, legacy_token, replicas};
use setpoint_proto::rbac::{PolicyRule, Role, RoleBinding, Subject};

use super::services::{CONTROLLER_MANAGER, DNS, INFORMERS, PROXY};
use crate::bootstrap::object::{group, role, role_binding, user};
use crate::bootstrap::rule::{Table, resource_rule, table};

/// The role of the announcements, in their namespace.
const REPLICAS: &str = "replicas";
/// The groups of the processes that announce themselves: services, agents of one node, agents of simulated nodes.
const ANNOUNCED: [&str; 3] = [NODES, SERVICES, SIMULATED_NODES];

/// The controllers of bootstrap tokens, which have no rule for the whole cluster.
const SIGNER: &str = "bootstrap-signer-controller";
const CLEANER: &str = "token-cleaner-controller";

/// Returns the Roles of `setpoint-system`, `setpoint-replicas`, `kube-node-lease`, `kube-system`, `kube-public` and
/// `default`.
pub fn roles() -> Vec<Role> {
    let named = |(namespace, name, rules)| role(namespace, &of_service(name), rules);
    all().into_iter().map(named).collect()
}

/// Returns the bindings of these Roles. Each has the name of its role.
pub fn role_bindings() -> Vec<RoleBinding> {
    let bound = |(namespace, name, _)| role_binding(namespace, &of_service(name), holders(name));
    all().into_iter().map(bound).collect()
}

fn holders(role: &str) -> Vec<Subject> {
    match role {
        REPLICAS => ANNOUNCED.map(group).into(),
        INFORMERS => vec![user(&of_service(CONTROLLER_MANAGER))],
        name => vec![user(&of_service(name))],
    }
}

/// Returns all roles with their namespaces.
fn all() -> Vec<(&'static str, &'static str, Vec<PolicyRule>)> {
    let of = |namespace, table: Table| {
        let rows = table.into_iter();
        rows.map(move |(name, rules)| (namespace, name, rules))
    };
    of(replicas::SYSTEM_NAMESPACE, in_system_namespace())
        .chain(of(replicas::NAMESPACE, announcements()))
        .chain(of(replicas::NODE_LEASES, of_nodes()))
        .chain(of(bootstrap_token::NAMESPACE, bootstrap_tokens()))
        .chain(of(legacy_token::TRACKING_NAMESPACE, tracked_tokens()))
        .chain(of("kube-system", cluster_dns()))
        .chain(of("kube-public", cluster_info()))
        .chain(of("default", addresses_of_gateways()))
        .collect()
}

fn in_system_namespace() -> Table {
    let mut table = elections();
    table.extend(shared());
    for (name, rules) in &mut table {
        if let Some((_, more)) = secrets().into_iter().find(|(of, _)| of == name) {
            rules.extend(more);
        }
    }
    table
}

/// Returns what each controller needs to lead. A name does not restrict creation, since it is not known when that is
/// authorized.
fn elections() -> Table {
    let elected = super::table().into_iter().map(|(name, _)| name);
    let others = [CONTROLLER_MANAGER, DNS, INFORMERS, PROXY];
    let elected = elected.filter(|name| !others.contains(name));
    let elected = elected.chain([SIGNER, CLEANER]);
    let rules = |lease| {
        vec![
            resource_rule("get watch update", "coordination.k8s.io", "leases", lease),
            resource_rule("create", "coordination.k8s.io", "leases", ""),
        ]
    };
    elected.map(|lease| (lease, rules(lease))).collect()
}

fn shared() -> Table {
    table! {
        // Controllers of one process share an informer of the Leases of all elections.
        "informers" {
            "watch"                     "coordination.k8s.io"  "leases";
        }
    }
}

fn secrets() -> Table {
    table! {
        "certificatesigningrequest-controller" {
            "get"                       "core"                 "secrets"  "cluster-signer";
            "create"                    "core"                 "secrets";
        }
    }
}

fn announcements() -> Table {
    table! {
        "replicas" {
            "get create update delete"  "coordination.k8s.io"  "leases";
            "create patch"              "core"                 "events";
        }
        // Which replicas of it are there.
        "dns" {
            "watch"                     "coordination.k8s.io"  "leases";
        }
    }
}

fn of_nodes() -> Table {
    table! {
        "node-lifecycle-controller" {
            "get watch"                 "coordination.k8s.io"  "leases";
        }
    }
}

/// Tokens cannot be told from other Secrets by a rule; upstream's controllers have these, too.
fn bootstrap_tokens() -> Table {
    table! {
        "bootstrap-signer-controller" {
            "watch"                     "core"                 "secrets";
        }
        "token-cleaner-controller" {
            "watch delete"              "core"                 "secrets";
        }
        // A token is claimed for one request, and removed once that has its certificate.
        "certificatesigningrequest-controller" {
            "watch patch delete"        "core"                 "secrets";
        }
    }
}

fn tracked_tokens() -> Table {
    table! {
        "legacy-service-account-token-cleaner-controller" {
            "watch"                     "core"                 "configmaps"
                "kube-apiserver-legacy-service-account-token-tracking";
        }
    }
}

/// The Service of the cluster's DNS, and a slice for each replica. A name does not restrict creation.
fn cluster_dns() -> Table {
    table! {
        "dns" {
            "create"                    "core"                 "services";
            "create update delete"      "discovery.k8s.io"     "endpointslices";
        }
    }
}

fn cluster_info() -> Table {
    table! {
        "bootstrap-signer-controller" {
            "watch update"              "core"                 "configmaps"  "cluster-info";
        }
    }
}

/// No node gets a certificate for these.
fn addresses_of_gateways() -> Table {
    table! {
        "certificatesigningrequest-controller" {
            "watch"                     "core"                 "endpoints services"  "kubernetes";
        }
    }
}
