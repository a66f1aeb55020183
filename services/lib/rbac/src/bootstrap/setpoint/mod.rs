//! Roles for Setpoint's own services and controllers. Each is for one user, `system:setpoint:<name>`: that of the
//! certificate of a service, or the one that a controller of the controller-manager acts as. No service is in
//! `system:masters`.
//!
//! * A ClusterRole `system:setpoint:<name>` is for the work of a service or controller.
//! * A Role of that name in `setpoint-system` is for its election: the Lease has the name of the controller.
//! * `system:setpoint:informers` is for the caches that all controllers of the controller-manager share. A process of a
//!   single controller whose own role has no verb `watch` needs a binding to it, too.
//! * `system:setpoint:replicas` is for the announcements of all processes.
//!
//! `tests/removal/rules.txt` names for each permission the test that needs it.
//!
//! The gateway has no role here: it writes to its own store, and calls other processes, which know it by its
//! certificate. Kubelets alone ask what it may do (`super::node_agents`).
//!
//! # Decisions
//!
//! * 2026-11: we chose the verb `watch` without `list` for informers, over both as upstream: ours get the initial state
//!   by the watch. Wrong if an informer has to read pages.
//! * 2026-11: we chose one Role for the announcements of all processes, over a rule for each: their names have the
//!   number of the replica, and a rule names objects by whole names. A process may overwrite the announcement of
//!   another, which then cannot be asked for its decisions. Wrong if more than that depends on an announcement.

mod cluster;
mod leases;
mod services;
#[cfg(test)]
mod tests;
mod workloads;

use setpoint_model::users::of_service;
use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, user};
use super::rule::Table;

pub use leases::{role_bindings, roles};

/// The names of all services and controllers, each of which writes under its name.
pub const WRITERS: [&str; 33] = [
    "bootstrap-signer-controller",
    "certificatesigningrequest-controller",
    "controller-manager",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "dns",
    "endpointslice-controller",
    "garbage-collector-controller",
    "gateway",
    "horizontalpodautoscaler-controller",
    "job-controller",
    "legacy-service-account-token-cleaner-controller",
    "namespace-controller",
    "node-agent",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "persistentvolume-controller",
    "persistentvolumeclaim-controller",
    "podgc-controller",
    "proxy",
    "replicaset-controller",
    "replication-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "scheduler",
    "service-cidrs-controller",
    "service-lb-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "token-cleaner-controller",
];

/// Returns the ClusterRoles of services and controllers.
pub fn cluster_roles() -> Vec<ClusterRole> {
    let rows = table().into_iter();
    rows.map(|(name, rules)| cluster_role(&of_service(name), rules))
        .collect()
}

/// Returns the bindings of these ClusterRoles. Each has the name of its role.
pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    let rows = table().into_iter();
    rows.map(|(name, _)| {
        let holder = match name {
            services::INFORMERS => services::CONTROLLER_MANAGER,
            name => name,
        };
        cluster_role_binding(&of_service(name), vec![user(&of_service(holder))])
    })
    .collect()
}

/// Returns the rules for the whole cluster.
fn table() -> Table {
    [services::table(), workloads::table(), cluster::table()].concat()
}
