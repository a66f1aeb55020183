//! Sandboxes: the namespaces and the volumes that the containers of a Pod share.

use setpoint_model::Key;

use crate::{Container, SandboxConfig, State};

/// The current state of a sandbox and its containers.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// Its configuration.
    pub config: SandboxConfig,
    /// The runtime's id of the sandbox, which changes when the sandbox is recreated; empty if the runtime never
    /// recreates one.
    pub id: String,
    /// Whether the namespaces that its containers share still exist. If not, it must be recreated.
    pub ready: bool,
    /// The attempts, sorted by container name, then number.
    pub containers: Vec<Container>,
}

impl Sandbox {
    /// Returns the newest attempt at a container.
    pub fn latest(&self, name: &str) -> Option<&Container> {
        self.attempts(name).next_back()
    }

    /// Returns the known attempts at a container, oldest first.
    pub fn attempts(&self, name: &str) -> impl DoubleEndedIterator<Item = &Container> {
        self.containers
            .iter()
            .filter(move |container| container.id.name == name)
    }

    /// Returns the containers that have not exited.
    pub fn alive(&self) -> impl Iterator<Item = &Container> {
        self.containers
            .iter()
            .filter(|container| !matches!(container.state, State::Exited(_)))
    }
}

/// Returns the name of a Pod as the kubelet formats it in messages: `web_default(5be0…)`.
pub fn pod_label(pod: &Key, uid: &str) -> String {
    format!("{}_{}({uid})", pod.name, pod.namespace)
}
