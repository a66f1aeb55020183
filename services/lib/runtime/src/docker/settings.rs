//! Settings of the docker runtime.

use std::net::{IpAddr, Ipv4Addr};
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
    /// Address of the engine's machine at which node ports and load balancers accept connections, by a container for
    /// each port; empty for none. For an agent in a container of the engine.
    pub published_address: String,
    /// Address in the network of Pods at which the proxy has node ports and load balancers, for published_address.
    pub proxy_address: String,
}

/// The addresses of published ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The address of the engine's machine.
    pub at: IpAddr,
    /// The address of the proxy in the network of Pods.
    pub to: Ipv4Addr,
}

impl Settings {
    /// Returns the addresses of published ports; `None` if none are published.
    ///
    /// # Errors
    /// If one of the addresses is missing or is none.
    pub fn published(&self) -> Result<Option<Published>, String> {
        if self.published_address.is_empty() {
            return Ok(None);
        }
        let at = self.published_address.parse();
        let at = at.map_err(|_| "docker.published-address: must be an IP address")?;
        let to = self.proxy_address.parse();
        let to = to.map_err(
            |_| "docker.published-address: needs an IPv4 address in docker.proxy-address",
        )?;
        Ok(Some(Published { at, to }))
    }

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
            published_address: String::new(),
            proxy_address: String::new(),
        }
    }
}
