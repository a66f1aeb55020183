//! Calls of gRPC to an agent that has proven itself.

use std::error::Error as _;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use setpoint_host::agent_auth::Session;
use setpoint_proto::ApiError;
use setpoint_proto::core::Node;
use setpoint_tls::ClientStream;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::channel::ResponseFuture;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt as _, service_fn};

use super::{AgentAddress, Protocol, TIMEOUT};
use crate::dial_policy::DialPolicy;

/// The interval of pings to an agent, and the time within which it must answer one.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A connection to an agent that has proven itself. Each call proves that a gateway makes it.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    channel: Channel,
    session: Session,
}

impl Agent {
    /// Connects to the agent of a node.
    ///
    /// # Errors
    /// `ServiceUnavailable` if the node has no proven agent; `InternalError` if it cannot be reached.
    pub(crate) async fn connect(policy: &DialPolicy, node: &Node) -> Result<Self, ApiError> {
        Self::connect_to(policy, &AgentAddress::of(policy, node)?).await
    }

    /// Connects to an agent.
    ///
    /// # Errors
    /// Those of [`Self::connect`].
    pub(crate) async fn connect_to(
        policy: &DialPolicy,
        at: &AgentAddress,
    ) -> Result<Self, ApiError> {
        let stream = at.dial(policy, Protocol::Http2).await?;
        let proven = timeout(TIMEOUT, Self::prove(at, stream)).await;
        let proven = proven.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        proven.map_err(|cause| at.unreachable(&cause))
    }

    async fn prove(at: &AgentAddress, stream: ClientStream<TcpStream>) -> Result<Self, String> {
        let channel = channel(at, stream).await.map_err(|error| cause(&error))?;
        let challenge = at.challenge();
        let request = challenge.request()?.map(|()| Body::empty());
        let response = channel.clone().oneshot(request).await;
        let response = response.map_err(|error| cause(&error))?;
        let session = challenge.verify(response.status(), response.headers())?;
        Ok(Self { channel, session })
    }
}

/// Returns a channel that has this connection and does not make another: an agent proves itself once on each.
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

impl Service<Request<Body>> for Agent {
    type Response = Response<Body>;
    type Error = tonic::transport::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, mut call: Request<Body>) -> Self::Future {
        self.session.sign(&mut call);
        self.channel.call(call)
    }
}
