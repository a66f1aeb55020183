//! Connections for calls of gRPC to an agent.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use setpoint_proto::ApiError;
use setpoint_proto::core::Node;
use setpoint_tls::ClientStream;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::{AgentAddress, Protocol, TIMEOUT};
use crate::dial_policy::DialPolicy;

/// The interval of pings to an agent, and the time within which it must answer one.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Connects to the agent of a node.
///
/// # Errors
/// `ServiceUnavailable` if the node declares no address that the gateway connects to; `InternalError` if its agent
/// cannot be reached.
pub(crate) async fn connect(policy: &DialPolicy, node: &Node) -> Result<Channel, ApiError> {
    connect_to(policy, &AgentAddress::of(node)?).await
}

/// Connects to an agent.
///
/// # Errors
/// Those of [`connect`].
pub(crate) async fn connect_to(
    policy: &DialPolicy,
    at: &AgentAddress,
) -> Result<Channel, ApiError> {
    let stream = at.dial(policy, Protocol::Http2).await?;
    let connected = timeout(TIMEOUT, channel(at, stream)).await;
    let connected = connected.map_err(|_| at.unreachable("it does not answer"))?;
    connected.map_err(|error| at.unreachable(&cause(&error)))
}

/// Returns a channel that has this connection and does not make another: the agent has been verified on this one.
async fn channel(
    at: &AgentAddress,
    stream: ClientStream<TcpStream>,
) -> Result<Channel, tonic::transport::Error> {
    let mut stream = Some(TokioIo::new(stream));
    let once = service_fn(move |_: Uri| {
        let stream = stream.take();
        async move { stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)) }
    });
    Endpoint::from_shared(format!("http://{}", at.socket()))?
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .connect_with_connector(once)
        .await
}

fn cause(error: &tonic::transport::Error) -> String {
    let cause = error.source();
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}
