//! The users that the processes of the control plane are.

/// The start of the names of the users that services and controllers are.
pub const PREFIX: &str = "system:setpoint:";
/// The group of all services.
pub const SERVICES: &str = "system:setpoint";
/// The start of the names of the users that nodes are, as kubelets.
pub const NODE_PREFIX: &str = "system:node:";
/// The group of all nodes.
pub const NODES: &str = "system:nodes";
/// The label of nodes that are machines of the control plane, as kubeadm sets it. Nodes cannot set it themselves.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// The group of the agents of simulated nodes.
pub const SIMULATED_NODES: &str = "system:setpoint:simulated-nodes";

/// The start of the names of the users that the agents of simulated nodes are; the prefix of the nodes' names follows.
pub const SIMULATED_NODES_PREFIX: &str = "system:setpoint:simulated-nodes:";
/// The group of those who may read metrics and health.
pub const MONITORING: &str = "system:monitoring";
/// The group of those who may do anything.
pub const ADMINISTRATORS: &str = "system:masters";

/// Returns whether a node is one of the simulated nodes with a prefix: `<prefix>-<digits>`.
pub fn is_simulated_node(prefix: &str, node: &str) -> bool {
    let number = node.strip_prefix(prefix);
    let number = number.and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Returns the user that a service or controller is.
pub fn of_service(name: &str) -> String {
    format!("{PREFIX}{name}")
}
