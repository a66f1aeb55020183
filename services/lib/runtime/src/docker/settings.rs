//! Settings of the docker runtime.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_model::quantity::Amount;

/// Settings of the docker runtime.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Socket of the container engine.
    pub socket: PathBuf,
    /// Network of the Pods in the engine; empty for the Compose project's `pods`, else `setpoint`.
    pub network: String,
    /// Image of the pause container, which holds a Pod's namespaces.
    pub pause_image: String,
    /// Runtime if no engine answers: none (the agent ends) or process (containers run with the rights and networks of
    /// the agent).
    pub fallback: Fallback,
    /// Cluster label of the containers; empty for the Compose project's name, else `setpoint`.
    pub cluster: String,
    /// Paths of the engine's machine that Pods may mount as hostPath volumes, with all below them; none by default.
    ///
    /// A Pod that may write to one can make a link in it that leads out of it.
    pub host_paths: Vec<String>,
    /// Maximum size of the image of a volume, as a quantity.
    pub image_volume_max_size: String,
}

impl Settings {
    /// Returns the maximum size of the image of a volume; zero if it is no quantity.
    pub fn image_volume_max_bytes(&self) -> i64 {
        Amount::parse(&self.image_volume_max_size).map_or(0, Amount::value)
    }
}

/// The runtime of a docker node if no engine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// None: the agent ends, because as processes the Pods would run with its user and its networks.
    None,
    /// Processes beside the agent.
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
            host_paths: Vec::new(),
            image_volume_max_size: "10Gi".to_owned(),
        }
    }
}
