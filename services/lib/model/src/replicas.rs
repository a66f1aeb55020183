//! The namespaces of Leases, and the names in those that announce the replicas of services.

/// The namespace of the Leases of leader election, and of the control plane's own objects.
pub const SYSTEM_NAMESPACE: &str = "setpoint-system";
/// The namespace of the Leases by which nodes say that they are alive.
pub const NODE_LEASES: &str = "kube-node-lease";
/// The namespace of the Leases that announce replicas.
pub const NAMESPACE: &str = "setpoint-replicas";
/// The label of such a Lease with the name of the service.
pub const SERVICE: &str = "setpoint.dev/service";
/// The annotation of such a Lease with host and port of the replica.
pub const ADDRESS: &str = "setpoint.dev/address";

/// The annotation of such a Lease with the user of the replica, which the gateway sets: nobody else writes it.
pub const USER: &str = "setpoint.dev/user";

/// The service that assigns Pods to nodes.
pub const SCHEDULER: &str = "scheduler";
/// The service that runs the Pods of a node.
pub const NODE_AGENT: &str = "node-agent";
/// The services that run beside the agent on the machine of a node that has joined, as clients and servers by the
/// certificates of the node.
pub const BESIDE_NODE_AGENT: [&str; 2] = ["dns", "proxy"];
