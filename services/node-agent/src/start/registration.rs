//! The registration of the nodes, and their heartbeats.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use futures::future::join_all;
use setpoint_controller::Replica;
use tokio::sync::watch;

use crate::node::heartbeat::{Heartbeat, Images};
use crate::node::watch::Wakes;
use crate::node::{Machine, Node, NodeState};
use crate::pod::clients::NodeClients;
use crate::settings::Settings;

/// The readiness check of the registration of nodes.
pub const CHECK: &str = "nodes";

/// The parts that the heartbeats of all nodes share.
pub struct Registration<'a> {
    /// The replica of the agent.
    pub replica: &'a Replica,
    /// The clients of the nodes.
    pub clients: NodeClients,
    /// The settings of the agent.
    pub settings: &'a Settings,
    /// The machine that the process runs on.
    pub machine: &'a Machine,
    /// Address of the agent's listener, as `host:port`.
    pub address: String,
    /// Returns the images that are present.
    pub images: Images,
    /// The state that decides on the conditions of the nodes.
    pub state: watch::Receiver<NodeState>,
    /// The signals that wake the heartbeats, by node.
    pub wakes: Arc<Wakes>,
}

impl Registration<'_> {
    /// Keeps every node registered and its Lease renewed until dropped. [`CHECK`] passes once all are registered.
    pub async fn keep(self, nodes: Vec<Node>) {
        let check = self.replica.host.health().check(CHECK);
        let count = nodes.len();
        let missing = Arc::new(AtomicUsize::new(count));
        let beats = nodes.into_iter().enumerate().map(|(index, node)| {
            let heartbeat = self.heartbeat(node);
            let (check, missing) = (check.clone(), Arc::clone(&missing));
            let registered = Once::new();
            let registered = move || {
                registered.call_once(|| {
                    if missing.fetch_sub(1, Ordering::Relaxed) == 1 {
                        check.pass();
                    }
                });
            };
            async move {
                let start = || heartbeat.run(index as f64 / count as f64, &registered);
                let (tasks, name) = (heartbeat.gateway.tasks(), &heartbeat.node.name);
                tasks.supervise("heartbeat", name, start).await;
            }
        });
        join_all(beats).await;
    }

    fn heartbeat(&self, node: Node) -> Heartbeat {
        Heartbeat {
            outdated: self.wakes.get(&node.name).cloned().unwrap_or_default(),
            gateway: self.clients.of(&node.name),
            node,
            address: self.address.clone(),
            machine: self.machine.clone(),
            images: Arc::clone(&self.images),
            state: self.state.clone(),
            interval: self.settings.heartbeat,
            status_interval: self.settings.status_refresh,
        }
    }
}
