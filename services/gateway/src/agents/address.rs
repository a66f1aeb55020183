//! The address of a node's agent, which the agent has proven.

use std::net::{IpAddr, SocketAddr};

use setpoint_host::agent_auth::{ANNOTATION, Challenge, Key};
use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::ClientStream;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::TIMEOUT;
use super::tls::{Protocol, secure};
use crate::dial_policy::{DialPolicy, Rule};

/// The address of the agent of a node.
#[derive(Clone, Debug)]
pub(crate) struct AgentAddress {
    node: String,
    address: SocketAddr,
    proof: String,
    key: Key,
}

impl AgentAddress {
    /// Returns the address that a node declares, its internal IP and its port. It is not checked before a connection.
    ///
    /// # Errors
    /// `ServiceUnavailable` if the gateway has no key of agents, or the node declares no address.
    pub(crate) fn of(policy: &DialPolicy, node: &Node) -> Result<Self, ApiError> {
        let name = &node.metadata.name;
        let key = policy.agent_key();
        let key = key.map_err(|cause| unavailable(name, &cause))?;
        Self::declared(node, &key)
            .ok_or_else(|| unavailable(name, "the node declares no IP address and port"))
    }

    /// Like [`Self::of`], with the key of agents; `None` if the node declares no address.
    pub(crate) fn declared(node: &Node, key: &Key) -> Option<Self> {
        let mut addresses = node.status.addresses.iter();
        let internal = addresses.find(|address| address.r#type == "InternalIP")?;
        let port = node.status.daemon_endpoints.kubelet_endpoint.port;
        // A name could be resolved to any address.
        let ip: IpAddr = internal.address.parse().ok()?;
        let proof = node.metadata.annotations.get(ANNOTATION);
        Some(Self {
            node: node.metadata.name.clone(),
            address: SocketAddr::new(ip, port.try_into().ok()?),
            proof: proof.cloned().unwrap_or_default(),
            key: key.clone(),
        })
    }

    /// Returns the address itself.
    pub(crate) fn socket(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether the gateway connects to it.
    pub(crate) fn is_proven(&self, policy: &DialPolicy) -> bool {
        policy.check(self.rule(), self.address).is_ok()
    }

    fn rule(&self) -> Rule<'_> {
        Rule::Agent {
            node: &self.node,
            proof: &self.proof,
            key: &self.key,
        }
    }

    /// Returns the name of the node.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Returns a challenge to the agent on a new connection.
    pub(super) fn challenge(&self) -> Challenge {
        Challenge::new(self.key.clone(), &self.node, self.address)
    }

    /// Connects to the agent, which has yet to prove that it has the gateways' key. If the gateway has credentials, the
    /// agent has proven by its certificate that it is the node's.
    ///
    /// # Errors
    /// `ServiceUnavailable` if the agent has not proven that the address is its own; `InternalError` if nothing answers
    /// there, or another than the node's agent.
    pub(crate) async fn dial(
        &self,
        policy: &DialPolicy,
        protocol: Protocol,
    ) -> Result<ClientStream<TcpStream>, ApiError> {
        let connected = policy.connect(self.rule(), self.address).await;
        let stream = connected.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                unavailable(&self.node, &format!("{}: {error}", self.address))
            }
            _ => self.unreachable(&error.to_string()),
        })?;
        let Some(credentials) = policy.credentials() else {
            return Ok(ClientStream::Plain(stream));
        };
        let secured = timeout(TIMEOUT, secure(credentials, protocol, &self.node, stream)).await;
        let secured = secured.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        secured.map_err(|cause| self.unreachable(&cause))
    }

    /// Returns the error of an agent that cannot be reached.
    pub(super) fn unreachable(&self, cause: &str) -> ApiError {
        let Self { node, address, .. } = self;
        let message = format!("cannot reach the agent of node {node:?} at {address}: {cause}");
        ApiError::new(Reason::InternalError, message)
    }
}

fn unavailable(node: &str, cause: &str) -> ApiError {
    let message = format!("the gateway does not connect to the agent of node {node:?}: {cause}");
    ApiError::new(Reason::ServiceUnavailable, message)
}
