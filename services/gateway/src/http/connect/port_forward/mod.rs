//! `portforward`: connections to ports of a Pod.

mod spdy;
mod websocket;

use axum::response::Response;
use setpoint_proto::ApiError;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::OpenPort;
use tonic::transport::Channel;

use super::upgrade::{self, Upgrade, upgrade};
use super::websocket::{handshake, socket, subprotocols};
use super::{ConnectRequest, kubelet, options, target, tunnel};
use crate::agents::{self, PortCall, Sink, Source, forward};

/// The protocol of port forwarding within SPDY.
const PROTOCOL: &str = "portforward.k8s.io";
/// The same, in a WebSocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// A Pod whose ports are forwarded.
#[derive(Clone)]
struct Forwarder {
    agent: Channel,
    namespace: String,
    pod: String,
    uid: String,
}

/// Connects the client with ports of a Pod.
///
/// # Errors
/// If the request is invalid or denied, or the agent of the Pod's node cannot be reached.
pub(super) async fn connect(mut request: ConnectRequest) -> Result<Response, ApiError> {
    let ports = options::ports(&request.query)?;
    let object = options::of_port_forward(&ports);
    let (context, object) = options::admit(&request, object).await?;
    let ports = options::ports_of(&*object);
    let (registry, route) = (&request.registry, &request.route);
    let pod: Pod = target::read(registry, &context, &route.namespace, &route.name).await?;
    let node = target::node_of(registry, &context, &pod).await?;
    if kubelet::runs(&node) {
        let call = kubelet::Call::port_forward(&pod, &ports);
        return kubelet::upgrade(&mut request, &node, call).await;
    }
    let forwarder = Forwarder {
        agent: agents::connect(registry.dial_policy(), &node).await?,
        namespace: pod.metadata.namespace,
        pod: pod.metadata.name,
        uid: pod.metadata.uid,
    };
    match Upgrade::of(&request.parts.headers)? {
        Upgrade::Spdy => over_spdy(&mut request, forwarder),
        Upgrade::WebSocket if tunnels(&request) => over_tunnel(&mut request, forwarder),
        Upgrade::WebSocket => over_channels(&mut request, forwarder, ports),
    }
}

/// Returns whether a client asks for SPDY in a WebSocket.
fn tunnels(request: &ConnectRequest) -> bool {
    let names = subprotocols(&request.parts.headers);
    names.iter().any(|name| name.starts_with("SPDY/3.1+"))
}

fn over_spdy(request: &mut ConnectRequest, forwarder: Forwarder) -> Result<Response, ApiError> {
    let offered = upgrade::offered(&request.parts.headers);
    if !offered.contains(&PROTOCOL) {
        return Ok(upgrade::refuse(&offered, &[PROTOCOL]));
    }
    let stop = request.streams.stop.clone();
    let headers = upgrade::spdy_headers(PROTOCOL);
    upgrade(request, Upgrade::Spdy, headers, async move |connection| {
        spdy::serve(connection, forwarder, &stop).await;
    })
}

fn over_tunnel(request: &mut ConnectRequest, forwarder: Forwarder) -> Result<Response, ApiError> {
    let (headers, ()) = handshake(&request.parts.headers, &[(TUNNEL, ())])?;
    let stop = request.streams.stop.clone();
    upgrade(
        request,
        Upgrade::WebSocket,
        headers,
        async move |connection| {
            let (near, far) = tunnel::pipe();
            let tunnel = tunnel::run(socket(connection).await, near);
            // The tunnel ends after what is in it.
            tokio::join!(tunnel, spdy::serve(far, forwarder, &stop));
        },
    )
}

fn over_channels(
    request: &mut ConnectRequest,
    forwarder: Forwarder,
    ports: Vec<u16>,
) -> Result<Response, ApiError> {
    let ports = websocket::checked(ports)?;
    let (headers, codec) = handshake(&request.parts.headers, &websocket::PROTOCOLS)?;
    let stop = request.streams.stop.clone();
    upgrade(
        request,
        Upgrade::WebSocket,
        headers,
        async move |connection| {
            websocket::serve(connection, codec, forwarder, ports, &stop).await;
        },
    )
}

impl Forwarder {
    /// Forwards one connection until it ends.
    ///
    /// # Errors
    /// If the port cannot be connected to, or the connection breaks.
    async fn forward(
        &self,
        port: u16,
        source: &mut impl Source,
        sink: &mut impl Sink,
    ) -> Result<(), String> {
        let open = OpenPort {
            namespace: self.namespace.clone(),
            pod: self.pod.clone(),
            uid: self.uid.clone(),
            port: port.into(),
            loopback: true,
        };
        let call = PortCall::open(self.agent.clone(), open).await;
        let forwarded = match call {
            Ok(call) => forward(call, source, sink).await,
            Err(error) => Err(error.message),
        };
        forwarded.map_err(|error| {
            let Self { pod, uid, .. } = self;
            format!("error forwarding port {port} to pod {pod}, uid {uid}: {error}")
        })
    }
}
