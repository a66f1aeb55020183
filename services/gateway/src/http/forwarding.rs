//! Headers and upgraded connections of requests that are passed on to another server.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    AUTHORIZATION, CONNECTION, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use setpoint_host::serve::Peer;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};

use super::connect::Streams;
use crate::request::audit;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// The headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
];
/// The prefix of the headers of impersonation.
const IMPERSONATE: &str = "impersonate-";

/// Returns the headers of a request for the server that it is passed on to: without credentials, and with the way that
/// it came.
pub(super) fn headers(parts: &mut Parts) -> HeaderMap {
    let mut headers = std::mem::take(&mut parts.headers);
    let upgrade = headers.get(UPGRADE).cloned();
    remove_hop_by_hop(&mut headers);
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    headers.remove(AUTHORIZATION);
    let names = headers.keys().cloned();
    let names: Vec<_> = names
        .filter(|name| name.as_str().starts_with(IMPERSONATE))
        .collect();
    for name in names {
        headers.remove(name);
    }
    if let Ok(from) = HeaderValue::try_from(parts.uri.path()) {
        headers.insert(FORWARDED_URI, from);
    }
    let peer = parts.extensions.get::<Peer>();
    if let Some(peer) =
        peer.and_then(|Peer(peer)| HeaderValue::try_from(peer.ip().to_string()).ok())
    {
        headers.append(FORWARDED_FOR, peer);
    }
    headers
}

/// Removes the headers that concern one connection only.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).into_iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(','));
    let named: Vec<HeaderName> = named.filter_map(|name| name.trim().parse().ok()).collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Sends a request of HTTP/1.1 on a connection of its own, which lasts as long as its response, or as what that
/// upgrades to.
///
/// # Errors
/// If the server breaks the connection.
pub(super) async fn send(
    streams: &Streams,
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Body>,
) -> hyper::Result<http::Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
    let stop = streams.stop.clone();
    streams.spawn(async move {
        let connection = connection.with_upgrades();
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%error, "a proxied connection broke");
            },
            () = stop.cancelled() => {}
        }
    });
    sender.send_request(request).await
}

/// Connects both ends of an upgrade, while holding `held`. Returns the response for the client; `None` if its
/// connection cannot be upgraded.
pub(super) fn switch(
    streams: &Streams,
    client: Option<OnUpgrade>,
    mut response: http::Response<Incoming>,
    held: impl Send + 'static,
) -> Option<Response> {
    let server = hyper::upgrade::on(&mut response);
    let client = client?;
    let stop = streams.stop.clone();
    let record = audit::current();
    streams.spawn(async move {
        let _record = record;
        let _held = held;
        let copying = async {
            let (client, server) = tokio::try_join!(client, server)?;
            let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
            copy_bidirectional(&mut client, &mut server).await.ok();
            Ok::<_, hyper::Error>(())
        };
        tokio::select! {
            copied = copying => if let Err(error) = copied {
                tracing::debug!(%error, "a forwarded connection was not upgraded");
            },
            () = stop.cancelled() => {}
        }
    });
    Some(response.map(|_| Body::empty()))
}
