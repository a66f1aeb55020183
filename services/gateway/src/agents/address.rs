//! The address of a node's agent.

use std::net::{IpAddr, SocketAddr};

use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::ClientStream;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::TIMEOUT;
use super::tls::{Protocol, secure};
use crate::dial_policy::{DialPolicy, Rule};

/// The address of the agent of a node, or of several.
#[derive(Clone, Debug)]
pub(crate) struct AgentAddress {
    /// At least one.
    nodes: Vec<String>,
    address: SocketAddr,
}

impl AgentAddress {
    /// Returns the address that a node declares, its internal IP and its port.
    ///
    /// # Errors
    /// `ServiceUnavailable` if the node declares no address.
    pub(crate) fn of(node: &Node) -> Result<Self, ApiError> {
        Self::declared(node).ok_or_else(|| {
            unavailable(
                &node.metadata.name,
                "the node declares no IP address and port",
            )
        })
    }

    /// Like [`Self::of`]; `None` if the node declares no address.
    pub(crate) fn declared(node: &Node) -> Option<Self> {
        let mut addresses = node.status.addresses.iter();
        let internal = addresses.find(|address| address.r#type == "InternalIP")?;
        let port = node.status.daemon_endpoints.kubelet_endpoint.port;
        // A name could be resolved to any address.
        let ip: IpAddr = internal.address.parse().ok()?;
        Some(Self {
            nodes: vec![node.metadata.name.clone()],
            address: SocketAddr::new(ip, port.try_into().ok()?),
        })
    }

    /// Returns the address itself.
    pub(crate) fn socket(&self) -> SocketAddr {
        self.address
    }

    /// Adds the nodes of another value, which have the same address: the agent of any of them is accepted.
    pub(crate) fn merge(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
    }

    /// Returns the name of the node, of the first of several.
    pub(crate) fn node(&self) -> &str {
        self.nodes.first().map_or("", String::as_str)
    }

    /// Connects to the agent. If the gateway has credentials, nothing but the handshake has been sent when this
    /// returns, and the agent has proven by its certificate that it is the node's.
    ///
    /// # Errors
    /// `ServiceUnavailable` if the gateway does not connect to such an address; `InternalError` if nothing answers
    /// there, or another than the node's agent.
    pub(crate) async fn dial(
        &self,
        policy: &DialPolicy,
        protocol: Protocol,
    ) -> Result<ClientStream<TcpStream>, ApiError> {
        let connected = policy.connect(Rule::Agent, self.address).await;
        let stream = connected.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => unavailable(self.node(), &error.to_string()),
            _ => self.unreachable(&error.to_string()),
        })?;
        let Some(credentials) = policy.credentials() else {
            return Ok(ClientStream::Plain(stream));
        };
        let stream = (self.address.ip(), stream);
        let secured = timeout(TIMEOUT, secure(credentials, protocol, &self.nodes, stream)).await;
        let secured = secured.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        secured.map_err(|cause| self.unreachable(&cause))
    }

    /// Returns the error of an agent that cannot be reached.
    pub(crate) fn unreachable(&self, cause: &str) -> ApiError {
        let (node, address) = (self.node(), self.address);
        let message = format!("cannot reach the agent of node {node:?} at {address}: {cause}");
        ApiError::new(Reason::InternalError, message)
    }
}

fn unavailable(node: &str, cause: &str) -> ApiError {
    let message = format!("the gateway does not connect to the agent of node {node:?}: {cause}");
    ApiError::new(Reason::ServiceUnavailable, message)
}
