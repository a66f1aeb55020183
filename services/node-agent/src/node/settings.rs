//! Settings of the nodes of a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_runtime::Kind;

use crate::node::admission::PodNetwork;
use crate::node::eviction;

/// The part of the agent's settings that describes its nodes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the node; empty for the name of the instance. Several nodes are named `<name>-0`, `<name>-1` and so on.
    pub node_name: String,
    /// Number of nodes in this process.
    pub nodes: usize,
    /// The addresses of Pods, unless they depend on the name of the node.
    pub pod_network: Option<PodNetwork>,
    /// The runtime of the containers.
    pub runtime: Kind,
    /// Resources of each node.
    pub capacity: Capacity,
    /// Resources that the agent and other parts of Kubernetes need.
    pub kube_reserved: String,
    /// Resources that the rest of the machine needs.
    pub system_reserved: String,
    /// Settings of the eviction of Pods, whose hard thresholds are reserved, too.
    pub eviction: eviction::Settings,
}

/// Resources of a node.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Capacity {
    /// CPUs of a node; empty for the machine's, or 32 if simulated.
    pub cpu: String,
    /// Memory of a node; empty for the machine's, or 256Gi if simulated.
    pub memory: String,
    /// Disk of a node; empty for the machine's, or 1Ti if simulated.
    pub ephemeral_storage: String,
    /// Maximum number of Pods of a node.
    pub pods: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            cpu: String::new(),
            memory: String::new(),
            ephemeral_storage: String::new(),
            pods: 110,
        }
    }
}

/// One node of processes, for tests.
#[cfg(test)]
impl Default for Settings {
    fn default() -> Self {
        Self {
            node_name: String::new(),
            nodes: 1,
            pod_network: None,
            runtime: Kind::Process,
            capacity: Capacity::default(),
            kube_reserved: String::new(),
            system_reserved: String::new(),
            eviction: eviction::Settings::default(),
        }
    }
}
