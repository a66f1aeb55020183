//! The configurations of sandboxes.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use setpoint_model::Key;

use super::{Limits, PodResources, Volume};
use crate::Hosts;

/// The configuration of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxConfig {
    /// Namespace of the Pod.
    pub namespace: String,
    /// Name of the Pod.
    pub name: String,
    /// Uid of the Pod.
    pub uid: String,
    /// Address of the Pod: the requested one, or the one that the runtime assigned. Unspecified if it has none.
    pub ip: Ipv4Addr,
    /// Host name of the containers; empty for the Pod's name.
    #[serde(default)]
    pub hostname: String,
    /// The additional entries of the file /etc/hosts of the containers.
    #[serde(default)]
    pub hosts: Hosts,
    /// Whether the Pod is in the network of its node.
    #[serde(default)]
    pub host_network: bool,
    /// Whether its containers see the processes of their node.
    #[serde(default)]
    pub host_pid: bool,
    /// Whether its containers have the IPC namespace of their node.
    #[serde(default)]
    pub host_ipc: bool,
    /// Whether one of its containers is privileged.
    #[serde(default)]
    pub privileged: bool,
    /// Whether it has a user namespace of its own.
    #[serde(default)]
    pub own_users: bool,
    /// The first of the node's ids that are its own, as the runtime has chosen it; `None` if there are none.
    #[serde(default)]
    pub first_user: Option<u32>,
    /// The runtime's handler; empty for the default one.
    #[serde(default)]
    pub runtime_handler: String,
    /// The resources that the handler itself needs besides the containers.
    #[serde(default)]
    pub overhead: Limits,
    /// The ports of its node that lead to it, if it has a network of its own.
    #[serde(default)]
    pub host_ports: Vec<HostPort>,
    /// The kernel parameters of the Pod's namespaces.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// The QoS class of the Pod; empty if it is not known.
    #[serde(default)]
    pub qos_class: String,
    /// The CPU that its containers request together, in thousandths of a core.
    #[serde(default)]
    pub millicpu_share: i64,
    /// The resources of the Pod as a whole, if it has any.
    #[serde(default)]
    pub resources: Option<PodResources>,
    /// The volumes of the Pod. Never persisted, because they contain secrets.
    #[serde(skip)]
    pub volumes: Vec<Volume>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            name: String::new(),
            uid: String::new(),
            ip: Ipv4Addr::UNSPECIFIED,
            hostname: String::new(),
            hosts: Hosts::default(),
            host_network: false,
            host_pid: false,
            host_ipc: false,
            privileged: false,
            own_users: false,
            first_user: None,
            runtime_handler: String::new(),
            overhead: Limits::default(),
            host_ports: Vec::new(),
            sysctls: BTreeMap::new(),
            qos_class: String::new(),
            millicpu_share: 0,
            resources: None,
            volumes: Vec::new(),
        }
    }
}

impl SandboxConfig {
    /// Returns the key of the Pod.
    pub fn pod(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// Returns the host name of the containers.
    pub fn hostname(&self) -> &str {
        match self.hostname.as_str() {
            "" => &self.name,
            named => named,
        }
    }
}

/// A port of a node that leads to a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    /// The address of the node at which it is; `None` for its InternalIP.
    pub ip: Option<Ipv4Addr>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The number on the node.
    pub port: u16,
    /// The number in the Pod.
    pub container_port: u16,
}
