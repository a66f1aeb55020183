//! The names by which the replicas of services find each other.

/// The namespace of the Leases for which replicas of a service contend, and of the control plane's own objects.
pub const SYSTEM_NAMESPACE: &str = "setpoint-system";
/// The namespace of the Leases that announce replicas, one each.
pub const NAMESPACE: &str = "setpoint-replicas";
/// The label of such a Lease that names the service.
pub const SERVICE: &str = "setpoint.dev/service";
/// The annotation of such a Lease with the host and port that the replica listens on.
pub const ADDRESS: &str = "setpoint.dev/address";

/// The service that assigns Pods to nodes.
pub const SCHEDULER: &str = "scheduler";
/// The service that runs the Pods of a node.
pub const NODE_AGENT: &str = "node-agent";
