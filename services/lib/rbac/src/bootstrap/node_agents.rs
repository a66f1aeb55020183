//! Roles for Setpoint's agents of nodes, beside what the node authorizer allows every node.

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, group};
use super::rule::{Table, table};

pub fn cluster_roles() -> Vec<ClusterRole> {
    let rows = table().into_iter();
    rows.map(|(name, rules)| cluster_role(name, rules))
        .collect()
}

pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    vec![cluster_role_binding(
        "system:setpoint:simulated-nodes",
        vec![group("system:setpoint:simulated-nodes")],
    )]
}

fn table() -> Table {
    table! {
        // One process for many nodes watches their objects once, and acts as each node for everything else.
        "system:setpoint:simulated-nodes" {
            "watch"             "core"  "nodes pods";
        }
    }
}
