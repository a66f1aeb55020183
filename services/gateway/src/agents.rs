//! Connections to the agents of nodes.

mod container;
mod port;
mod secret;

use std::error::Error as _;
use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, NODE_HEADER, Reason};
use tonic::Code;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::peers::Peers;

pub(crate) use container::{ContainerCall, Verb};
pub(crate) use port::{PortCall, Sink, Source, forward};

/// A connection to an agent, whose calls have the secret of gateways.
pub(crate) type Agent = InterceptedService<Channel, secret::Secret>;

/// The time within which an agent must begin to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The messages to an agent that wait to be sent.
const QUEUE: usize = 16;
/// The interval of pings to an agent, and the time within which it must answer one.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Returns the address of a node's agent, as the node declares it: its internal IP, and its port.
pub(crate) fn address(node: &Node) -> (&str, i32) {
    let addresses = &node.status.addresses;
    let address = addresses
        .iter()
        .find(|address| address.r#type == "InternalIP");
    let host = address.map_or("", |address| address.address.as_str());
    (host, node.status.daemon_endpoints.kubelet_endpoint.port)
}

/// Connects to the agent of a node.
///
/// # Errors
/// `InternalError` if the gateway may not call the address, or nothing answers there.
pub(crate) async fn connect(peers: &Peers, node: &Node) -> Result<Agent, ApiError> {
    let (host, port) = address(node);
    let unreachable = |cause: String| {
        let name = &node.metadata.name;
        let message = format!("cannot reach the agent of node {name:?} at {host}:{port}: {cause}");
        ApiError::new(Reason::InternalError, message)
    };
    // A name could be resolved to any address.
    host.parse::<IpAddr>()
        .map_err(|_| unreachable("its InternalIP is no IP address".to_owned()))?;
    let endpoint = peers.endpoint(host, u16::try_from(port).unwrap_or_default());
    let endpoint = endpoint.await.map_err(unreachable)?;
    let endpoint = endpoint
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE);
    let cause = |error: tonic::transport::Error| {
        let cause = error.source();
        cause.map_or_else(|| error.to_string(), ToString::to_string)
    };
    let secret = secret::Secret::read(peers.agent_secret_file()).map_err(unreachable)?;
    let connected = endpoint.connect().await;
    let channel = connected.map_err(|error| unreachable(cause(error)))?;
    Ok(Agent::new(channel, secret))
}

/// Returns the headers of a request to a page that the agent of a node serves only to gateways.
///
/// # Errors
/// If the secret of gateways cannot be read.
pub(crate) fn page_headers(peers: &Peers, node: &str) -> Result<HeaderMap, String> {
    let secret = secret::Secret::read(peers.agent_secret_file())?;
    let node = HeaderValue::try_from(node).map_err(|error| error.to_string())?;
    let named = (HeaderName::from_static(NODE_HEADER), node);
    Ok(secret.header().into_iter().chain([named]).collect())
}

/// Waits until an agent has begun to answer.
///
/// # Errors
/// The error of the agent, or `InternalError` if it does not answer.
pub(crate) async fn answer<T>(
    answering: impl Future<Output = Result<T, tonic::Status>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(TIMEOUT, answering).await {
        // The client of the gateway is not the one that the agent does not know.
        Ok(Err(status)) if status.code() == Code::Unauthenticated => {
            let message = format!("the node's agent refuses the gateway: {}", status.message());
            Err(unexpected(&message))
        }
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(unexpected("the node's agent does not answer")),
    }
}

/// Returns the error of an agent that does not keep to its contract.
fn unexpected(message: &str) -> ApiError {
    ApiError::new(Reason::InternalError, message)
}
