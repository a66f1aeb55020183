//! The upgrade of a connection, and the tasks that serve what it was upgraded to.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use setpoint_proto::{ApiError, Reason};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::ConnectRequest;
use crate::request::audit;

/// The header with the protocol within SPDY.
pub(super) const PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// The protocols that the server would have accepted.
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");
const SPDY: HeaderValue = HeaderValue::from_static("SPDY/3.1");
const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");
/// The time in which streams have to end at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The protocol that a client asks to upgrade to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Upgrade {
    WebSocket,
    Spdy,
}

impl Upgrade {
    /// Returns the protocol that a request asks for.
    ///
    /// # Errors
    /// `BadRequest` if it asks for none that is known.
    pub(in crate::http) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let has = |name: HeaderName, wanted: &str| {
            let values = headers.get_all(name).into_iter();
            let mut values = values.filter_map(|value| value.to_str().ok());
            values.any(|value| value.to_ascii_lowercase().contains(wanted))
        };
        let upgrades = has(CONNECTION, "upgrade");
        if upgrades && has(UPGRADE, "websocket") {
            return Ok(Self::WebSocket);
        }
        if upgrades && has(UPGRADE, "spdy/3.1") {
            return Ok(Self::Spdy);
        }
        Err(ApiError::new(
            Reason::BadRequest,
            "Upgrade request required",
        ))
    }

    fn name(self) -> HeaderValue {
        match self {
            Self::WebSocket => WEBSOCKET,
            Self::Spdy => SPDY,
        }
    }
}

/// The tasks of upgraded connections. They end soon after `stop` is cancelled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    tasks: TaskTracker,
    pub stop: CancellationToken,
}

impl Streams {
    /// Returns the tasks of a server that stops by this token.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self {
            tasks: TaskTracker::new(),
            stop,
        }
    }

    /// Waits for the shutdown, and then until all tasks have ended or had their time.
    pub(crate) async fn drain(self) {
        self.stop.cancelled().await;
        self.tasks.close();
        if timeout(CLOSE_TIMEOUT, self.tasks.wait()).await.is_err() {
            debug!(open = self.tasks.len(), "streams did not end in time");
        }
    }

    /// Runs a task that drops what it holds when it is done.
    pub(in crate::http) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

/// The connection of a client, after the upgrade.
pub(in crate::http) type Connection = TokioIo<Upgraded>;

/// Upgrades the connection of a request, and serves it in a task.
///
/// # Errors
/// As [`switch`].
pub(super) fn upgrade<F>(
    request: &mut ConnectRequest,
    to: Upgrade,
    headers: HeaderMap,
    serve: impl FnOnce(Connection) -> F + Send + 'static,
) -> Result<Response, ApiError>
where
    F: Future<Output = ()> + Send,
{
    let upgraded = request.parts.extensions.remove::<OnUpgrade>();
    switch(upgraded, &request.streams, to, headers, serve)
}

/// Returns the response that switches protocols, and serves the connection in a task once it was sent.
///
/// # Errors
/// `BadRequest` if the connection cannot be upgraded, as those of HTTP/2.
pub(in crate::http) fn switch<F>(
    upgraded: Option<OnUpgrade>,
    streams: &Streams,
    to: Upgrade,
    headers: HeaderMap,
    serve: impl FnOnce(Connection) -> F + Send + 'static,
) -> Result<Response, ApiError>
where
    F: Future<Output = ()> + Send,
{
    let upgraded = upgraded.ok_or_else(|| {
        let message = "unable to upgrade: the connection cannot be upgraded";
        ApiError::new(Reason::BadRequest, message)
    })?;
    let record = audit::current();
    streams.spawn(async move {
        let _record = record;
        match upgraded.await {
            Ok(connection) => serve(TokioIo::new(connection)).await,
            Err(error) => debug!(%error, "a connection was not upgraded"),
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, to.name());
    Ok(response)
}

/// Returns the headers of an upgrade to SPDY with this protocol.
pub(super) fn spdy_headers(protocol: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(PROTOCOL, HeaderValue::from_static(protocol))])
}

/// The protocols within SPDY that a client offers, in its order.
pub(super) fn offered(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(PROTOCOL).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    names
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns the response to a client that offers no protocol that the server accepts.
pub(super) fn refuse(offered: &[&str], accepted: &[&str]) -> Response {
    let (status, message) = match offered {
        [] => (
            StatusCode::BAD_REQUEST,
            format!("unable to upgrade: header {PROTOCOL} does not exist in request"),
        ),
        _ => (
            StatusCode::FORBIDDEN,
            format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
                offered.join(" "),
                accepted.join(" ")
            ),
        ),
    };
    let mut response = Response::new(Body::from(message));
    *response.status_mut() = status;
    for name in accepted {
        if let Ok(name) = HeaderValue::from_str(name) {
            response.headers_mut().append(ACCEPTED, name);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upgrade_is_named_by_two_headers() {
        let of = |connection: &'static str, upgrade: &'static str| {
            let headers = [(CONNECTION, connection), (UPGRADE, upgrade)];
            let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
            Upgrade::of(&HeaderMap::from_iter(headers)).ok()
        };
        assert_eq!(of("Upgrade", "websocket"), Some(Upgrade::WebSocket));
        assert_eq!(
            of("keep-alive, Upgrade", "WebSocket"),
            Some(Upgrade::WebSocket)
        );
        assert_eq!(of("Upgrade", "SPDY/3.1"), Some(Upgrade::Spdy));
        assert_eq!(of("keep-alive", "websocket"), None);
        assert_eq!(of("Upgrade", "h2c"), None);
    }

    #[test]
    fn offered_protocols_are_listed_or_repeated() {
        let mut headers = HeaderMap::new();
        for value in ["v4.channel.k8s.io, v3.channel.k8s.io", "channel.k8s.io"] {
            headers.append(PROTOCOL, HeaderValue::from_static(value));
        }
        assert_eq!(
            offered(&headers),
            ["v4.channel.k8s.io", "v3.channel.k8s.io", "channel.k8s.io"]
        );
        assert_eq!(refuse(&[], &["a"]).status(), StatusCode::BAD_REQUEST);
        let refused = refuse(&["x"], &["a", "b"]);
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        assert_eq!(refused.headers().get_all(ACCEPTED).iter().count(), 2);
    }
}
