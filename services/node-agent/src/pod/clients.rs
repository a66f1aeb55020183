//! The users that the nodes of this process are.

use setpoint_controller::Client;
use setpoint_model::users::{NODE_PREFIX, NODES};

/// The clients of the nodes of an agent. The agent of one node is that node's user; the agent of several acts as each
/// of them, which its certificate permits for these nodes only.
#[derive(Clone, Debug)]
pub struct NodeClients {
    client: Client,
    impersonates: bool,
}

impl NodeClients {
    /// Returns the clients of an agent of `count` nodes, which connects by `client`.
    pub const fn new(client: Client, count: usize) -> Self {
        Self {
            client,
            impersonates: count > 1,
        }
    }

    /// Returns the client of the node with this name.
    pub fn of(&self, node: &str) -> Client {
        match self.impersonates {
            true => self
                .client
                .acting_as(&format!("{NODE_PREFIX}{node}"), &[NODES]),
            false => self.client.clone(),
        }
    }
}
