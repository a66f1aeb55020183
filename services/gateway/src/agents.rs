//! Connections to the agents of nodes.

use std::error::Error as _;
use std::net::IpAddr;
use std::time::Duration;

use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, Reason};
use tonic::transport::Channel;

use crate::peers::Peers;

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
pub(crate) async fn connect(peers: &Peers, node: &Node) -> Result<Channel, ApiError> {
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
    let connected = endpoint.connect().await;
    connected.map_err(|error| unreachable(cause(error)))
}
