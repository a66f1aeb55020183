//! The subresources that connect a client with a container, a Pod, a Service or a node: `exec`, `attach`, `log`,
//! `portforward` and `proxy`.
//!
//! ```text
//! request ─▶ options, admission (`options`) ─▶ the agent of the Pod's node opens the streams (`target`, `crate::agents`)
//!   ─▶ the connection is upgraded (`upgrade`)
//!      ├ WebSocket with channels (`websocket`, `channels`)            kubectl, Python client, browsers
//!      └ SPDY/3.1 (`setpoint-spdy`), directly or in a WebSocket (`tunnel`)  kubectl
//!   ─▶ bytes are relayed until one end has ended (`container`, `port_forward`)
//! ```
//! An error before the upgrade is one of HTTP; a later one is sent in the error stream of the protocol. Nothing is
//! queued beyond a few messages in each direction: an end that does not read stops the other. A shutdown ends the
//! streams.
//!
//! The agent of the Pod's node is called by the gRPC calls `Exec`, `Attach` and `PortForward` of
//! `proto/setpoint/node.proto`.
//!
//! A node whose version is not that of an agent has a kubelet: it has the request by HTTP, with its own parameters, and
//! what it upgrades to is passed on as it is (`kubelet`). If it does not know the newer protocols of kubectl, that asks
//! once more, by SPDY.
//!
//! * `exec` and `attach`: WebSocket (`v5`, `v4` and older `channel.k8s.io`, each in base64, too) and SPDY/3.1 (`v4` to
//!   `v1`). `portforward`: SPDY/3.1, directly or in a WebSocket as kubectl does, and channels of a WebSocket as the
//!   Python client does. `log` in messages of a WebSocket. So are watches, one event in each (`watch_socket`): texts of
//!   JSON, or bytes if `Accept` prefers protobuf.
//! * On each connection to an agent the certificates of both prove who they are, before anything is sent
//!   (`crate::agents`). Ports of Pods are reached through their agents.
//! * `proxy` of a Pod, of a Service (one of its ready Pods, by EndpointSlices) and of a node (the health checks,
//!   metrics and statistics of its agent, at the agent's own port): any method of HTTP/1.1, and upgrades. The name
//!   `https:<name>:<port>` connects with TLS, without verification as upstream. Links in pages of HTML, and redirects,
//!   are rewritten. Pages have the origin of the API, so that they get `Content-Security-Policy: sandbox`: in a browser
//!   their scripts do not run.
//! * A token among the subprotocols of a WebSocket (`base64url.bearer.authorization.k8s.io.…`) is verified as one in
//!   `Authorization`, and taken out.
//! * A connection counts against the limit of connections until it is closed, also after an upgrade. One whose client
//!   has vanished ends within a minute.
//! * What fails before the upgrade is a `Status`; kubectl shows it after it has tried SPDY as well.
//! * A stream has no deadline: it ends with the container, when the client leaves (the agent is told), when nothing was
//!   sent for a while (the agent's setting, four hours by default), or at a shutdown, which it delays by five seconds
//!   at most.

mod channels;
mod container;
mod kubelet;
mod log;
mod options;
mod outcome;
mod port_forward;
mod proxy;
mod target;
mod tunnel;
pub(super) mod upgrade;
pub(super) mod websocket;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use setpoint_kinds::Identity;
use setpoint_proto::ApiError;

use super::not_allowed;
use crate::registry::Registry;
use crate::request::{Query, Route};

pub(crate) use upgrade::Streams;

/// A request to connect.
pub(super) struct ConnectRequest {
    pub registry: Arc<Registry>,
    pub route: Arc<Route>,
    pub query: Query,
    /// The head of the request, with the connection that may be upgraded.
    pub parts: Parts,
    pub user: Identity,
    pub streams: Streams,
}

/// Connects the client.
///
/// # Errors
/// If the request is invalid or denied, or what it names cannot be reached.
pub(super) async fn connect(request: ConnectRequest, body: Body) -> Result<Response, ApiError> {
    let method = request.parts.method.as_str();
    let upgrades = matches!(method, "GET" | "POST");
    match request.route.subresource.as_str() {
        "proxy" => proxy::proxy(request, body).await,
        "log" if method == "GET" => log::connect(request).await,
        _ if !upgrades => Err(not_allowed()),
        "exec" | "attach" => container::connect(request).await,
        "portforward" => port_forward::connect(request).await,
        _ => Err(not_allowed()),
    }
}
