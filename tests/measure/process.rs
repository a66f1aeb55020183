//! The processes that are measured.

pub use setpoint_tests::usage::{anonymous_memory, cpu, machine_cpu, memory, proportional_memory};

/// One process of each service.
pub const SERVICES: [&str; 5] = [
    "gateway-0",
    "deployment-controller-0",
    "replicaset-controller-0",
    "scheduler-0",
    "node-agent-0",
];
