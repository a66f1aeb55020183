//! `exec` and `attach`: the streams of a container.

mod relay;
mod spdy;
mod websocket;

use axum::response::Response;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::OpenContainer;
use setpoint_proto::{ApiError, Reason};
use tonic::transport::Channel;

use super::upgrade::{self, Upgrade, upgrade};
use super::{ConnectRequest, kubelet, options, target};
use crate::agents::{self, ContainerCall, Verb};

/// The streams that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

/// Connects the client with a container.
///
/// # Errors
/// If the request is invalid or denied, or nothing was started.
pub(super) async fn connect(mut request: ConnectRequest) -> Result<Response, ApiError> {
    let verb = match request.route.subresource.as_str() {
        "exec" => Verb::Exec,
        _ => Verb::Attach,
    };
    let object = options::of_container(&request.query, verb == Verb::Exec);
    let (context, object) = options::admit(&request, object).await?;
    let (registry, route) = (&request.registry, &request.route);
    let pod: Pod = target::read(registry, &context, &route.namespace, &route.name).await?;
    let open = options::open(&*object)?;
    let container = target::container(&pod, &open.container)?;
    let node = target::node_of(registry, &context, &pod).await?;
    let to = Upgrade::of(&request.parts.headers)?;
    if kubelet::runs(&node) {
        let call = kubelet::Call::container(verb, &pod, &container, &open);
        return kubelet::upgrade(&mut request, &node, call).await;
    }
    let agent = agents::connect(registry.dial_policy(), &node).await?;
    let open = OpenContainer {
        namespace: pod.metadata.namespace,
        pod: pod.metadata.name,
        uid: pod.metadata.uid,
        container,
        ..open
    };
    match to {
        Upgrade::WebSocket => over_websocket(&mut request, agent, verb, open).await,
        Upgrade::Spdy => over_spdy(&mut request, agent, verb, open).await,
    }
}

async fn over_websocket(
    request: &mut ConnectRequest,
    agent: Channel,
    verb: Verb,
    open: OpenContainer,
) -> Result<Response, ApiError> {
    let (headers, protocol) =
        super::websocket::handshake(&request.parts.headers, &websocket::PROTOCOLS)?;
    let wanted = Wanted::of(&open);
    let call = start(agent, verb, open).await?;
    let stop = request.streams.stop.clone();
    upgrade(
        request,
        Upgrade::WebSocket,
        headers,
        async move |connection| {
            websocket::serve(
                connection,
                protocol,
                wanted,
                relay::Relay { verb, call, stop },
            )
            .await;
        },
    )
}

async fn over_spdy(
    request: &mut ConnectRequest,
    agent: Channel,
    verb: Verb,
    open: OpenContainer,
) -> Result<Response, ApiError> {
    let offered = upgrade::offered(&request.parts.headers);
    let Some((name, protocol)) = spdy::negotiate(&offered) else {
        return Ok(upgrade::refuse(
            &offered,
            &spdy::PROTOCOLS.map(|(name, _)| name),
        ));
    };
    let headers = upgrade::spdy_headers(name);
    let wanted = Wanted::of(&open);
    let call = start(agent, verb, open).await?;
    let stop = request.streams.stop.clone();
    upgrade(request, Upgrade::Spdy, headers, async move |connection| {
        spdy::serve(
            connection,
            protocol,
            wanted,
            relay::Relay { verb, call, stop },
        )
        .await;
    })
}

/// Lets the agent connect the streams.
async fn start(agent: Channel, verb: Verb, open: OpenContainer) -> Result<ContainerCall, ApiError> {
    let call = ContainerCall::open(agent, verb, open).await;
    call.map_err(|error| {
        let message = format!("unable to upgrade connection: {}", error.message);
        ApiError::new(Reason::InternalError, message)
    })
}

impl Wanted {
    fn of(open: &OpenContainer) -> Self {
        Self {
            stdin: open.stdin,
            stdout: open.stdout,
            stderr: open.stderr,
            tty: open.tty,
        }
    }
}
