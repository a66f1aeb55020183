//! The roles and bindings that every cluster has from its start: those of Kubernetes 1.36.2 with its default feature
//! gates, under the same names, and those of [`setpoint`]'s services.
//!
//! The former are for the users and groups of Kubernetes' own components, such as `system:masters`,
//! `system:kube-scheduler` and the ServiceAccounts of its controllers. All have the label
//! `kubernetes.io/bootstrapping: rbac-defaults`, and the annotation [`AUTOUPDATE`], without which an object is left as
//! an administrator has changed it.

pub mod cluster_info;
mod components;
mod controllers;
mod namespaces;
mod node_agents;
mod nodes;
mod object;
mod public;
mod rule;
pub mod setpoint;
#[cfg(test)]
mod tests;
mod users;

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};

pub use object::AUTOUPDATE;

/// Returns the ClusterRoles that every cluster has.
pub fn cluster_roles() -> Vec<ClusterRole> {
    [
        users::cluster_roles(),
        public::cluster_roles(),
        components::cluster_roles(),
        nodes::cluster_roles(),
        node_agents::cluster_roles(),
        controllers::cluster_roles(),
        setpoint::cluster_roles(),
    ]
    .concat()
}

/// Returns the ClusterRoleBindings that every cluster has. Each has the name of its role.
pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    [
        users::cluster_role_bindings(),
        public::cluster_role_bindings(),
        components::cluster_role_bindings(),
        nodes::cluster_role_bindings(),
        node_agents::cluster_role_bindings(),
        controllers::cluster_role_bindings(),
        setpoint::cluster_role_bindings(),
    ]
    .concat()
}

/// Returns the Roles of the namespaces `kube-system` and `kube-public`, and of those of Setpoint's Leases.
pub fn roles() -> Vec<Role> {
    [namespaces::roles(), setpoint::roles()].concat()
}

/// Returns the RoleBindings of the same namespaces.
pub fn role_bindings() -> Vec<RoleBinding> {
    [namespaces::role_bindings(), setpoint::role_bindings()].concat()
}
