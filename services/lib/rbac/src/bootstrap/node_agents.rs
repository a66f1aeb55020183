//! Roles for Setpoint's agents of nodes, beside what the node authorizer allows every node.

use setpoint_model::bootstrap_token::JOINING_AGENTS;
use setpoint_model::users::{NODES, SIMULATED_NODES, of_service};
use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, group, user};
use super::rule::{Table, table};

const SIMULATED: &str = "system:setpoint:simulated-nodes";
const JOINING: &str = "system:setpoint:joining-agents";
const KUBELETS: &str = "system:setpoint:kubelet-clients";

pub fn cluster_roles() -> Vec<ClusterRole> {
    let rows = table().into_iter();
    rows.map(|(name, rules)| cluster_role(name, rules))
        .collect()
}

pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    vec![
        cluster_role_binding(SIMULATED, vec![group(SIMULATED_NODES)]),
        cluster_role_binding(JOINING, vec![group(JOINING_AGENTS)]),
        // Nodes renew their own client certificates.
        cluster_role_binding(
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            vec![group(NODES)],
        ),
        // Kubelets, if there are some, ask whether gateways may.
        cluster_role_binding(KUBELETS, vec![user(&of_service("gateway"))]),
    ]
}

fn table() -> Table {
    table! {
        // One process for many nodes watches their objects once, and acts as each node for everything else.
        "system:setpoint:simulated-nodes" {
            "watch"             "core"  "nodes pods";
        }
        // An agent that joins by a token asks for its certificate, and reads it.
        "system:setpoint:joining-agents" {
            "create get"        "certificates.k8s.io"  "certificatesigningrequests";
        }
        // What gateways pass on to kubelets: streams of Pods, and pages.
        "system:setpoint:kubelet-clients" {
            "create get"        "core"  "nodes/proxy";
            "get"               "core"  "nodes/metrics nodes/stats";
        }
    }
}
