//! The subresources that connect a client with a container, a Pod, a Service or a node: `exec`, `attach`, `log`, `portforward` and
//! `proxy`.
//!
//! ```text
//! request ─▶ options, admission (`options`) ─▶ the agent of the Pod's node opens the streams (`target`, `crate::agents`)
//!   ─▶ the connection is upgraded (`upgrade`)
//!      ├ WebSocket with channels (`websocket`, `channels`)            kubectl, Python client, browsers
//!      └ SPDY/3.1 (`setpoint-spdy`), directly or in a WebSocket (`tunnel`)  kubectl
//!   ─▶ bytes are relayed until one end has ended (`container`, `port_forward`)
//! ```
//! An error before the upgrade is one of HTTP; a later one is sent in the error stream of the protocol. Nothing is queued
//! beyond a few messages in each direction: an end that does not read stops the other. A shutdown ends the streams.

mod channels;
mod container;
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
