//! The users that the processes of the control plane are.

/// The start of the names of the users that services and controllers are.
pub const PREFIX: &str = "system:setpoint:";
/// The group of all services.
pub const SERVICES: &str = "system:setpoint";
/// The start of the names of the users that nodes are, as kubelets.
pub const NODE_PREFIX: &str = "system:node:";
/// The group of all nodes.
pub const NODES: &str = "system:nodes";
/// The group of the agents of simulated nodes.
pub const SIMULATED_NODES: &str = "system:setpoint:simulated-nodes";

/// Returns the user that a service or controller is.
pub fn of_service(name: &str) -> String {
    format!("{PREFIX}{name}")
}
