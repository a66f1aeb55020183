//! What can be set about the container engine.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Settings of the docker runtime.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where the engine listens.
    pub socket: PathBuf,
    /// The network of Pods; empty for the one named `pods` of the agent's own Compose project, else `setpoint`.
    pub network: String,
    /// The image that holds a Pod's namespaces.
    pub pause_image: String,
    /// What runs the containers if no engine answers.
    pub fallback: Fallback,
    /// Which cluster the containers belong to; empty for the agent's own Compose project, else `setpoint`.
    pub cluster: String,
}

/// What runs the containers of a docker node if no engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// Nothing: the agent ends, since a Pod's programs would run as its own user, in its own networks.
    None,
    /// Plain processes beside the agent.
    Process,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            socket: "/var/run/docker.sock".into(),
            network: String::new(),
            pause_image: "registry.k8s.io/pause:3.10".to_owned(),
            fallback: Fallback::None,
            cluster: String::new(),
        }
    }
}
