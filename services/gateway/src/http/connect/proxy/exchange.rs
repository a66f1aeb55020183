//! The exchange of a request and a response with a backend, by HTTP/1.1.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    AUTHORIZATION, CONNECTION, HOST, HeaderName, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use setpoint_host::serve::Peer;
use setpoint_proto::{ApiError, Reason};
use tokio::io::copy_bidirectional;

use super::super::ConnectRequest;
use super::super::upgrade::Streams;
use super::backend::{Backend, unreachable};
use super::{links, location};

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

/// Sends a request to a backend, and returns its response. An upgrade is passed on, too.
///
/// # Errors
/// `ServiceUnavailable` if the backend breaks the connection.
pub(super) async fn exchange(
    request: ConnectRequest,
    body: Body,
    backend: Backend,
    path: &str,
) -> Result<Response, ApiError> {
    let source = request.parts.uri.clone();
    let own = request.parts.headers.get(HOST).cloned();
    let streams = request.streams.clone();
    let mut outgoing = outgoing(request, body, path)?;
    let client = outgoing.extensions_mut().remove::<OnUpgrade>();
    let handshake = http1::handshake(TokioIo::new(backend.connection)).await;
    let broken = |error: hyper::Error| unreachable(&error.to_string());
    let (mut sender, connection) = handshake.map_err(broken)?;
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
    let response = sender.send_request(outgoing).await.map_err(broken)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return switched(&streams, client, response);
    }
    let (mut head, body) = response.into_parts();
    let headers = &mut head.headers;
    remove_hop_by_hop(headers);
    let own = own.as_ref().and_then(|host| host.to_str().ok());
    let place = location::Place {
        prefix: location::prefix(source.path(), path).to_owned(),
        backend: backend.host,
        own: own.unwrap_or_default().to_owned(),
    };
    let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
    let to = to.and_then(|to| HeaderValue::try_from(place.rewrite(to)).ok());
    if let Some(to) = to {
        headers.insert(LOCATION, to);
    }
    // As a stream of unknown length it is neither kept in memory nor compressed.
    let body = Body::from_stream(body.into_data_stream());
    let body = links::rewrite(headers, body, place);
    Ok(Response::from_parts(head, body))
}

/// Returns the request for the backend.
fn outgoing(request: ConnectRequest, body: Body, path: &str) -> Result<Request<Body>, ApiError> {
    let ConnectRequest { parts, .. } = request;
    let query = parts.uri.query().map(|query| format!("?{query}"));
    let uri = format!("{path}{}", query.unwrap_or_default());
    let uri: Uri = uri.parse().map_err(|error: http::uri::InvalidUri| {
        ApiError::new(Reason::BadRequest, error.to_string())
    })?;
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = parts.method;
    let mut headers = parts.headers;
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
    *outgoing.headers_mut() = headers;
    *outgoing.uri_mut() = uri;
    if let Some(upgrade) = parts.extensions.get::<OnUpgrade>() {
        outgoing.extensions_mut().insert(upgrade.clone());
    }
    Ok(outgoing)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).into_iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(','));
    let named: Vec<HeaderName> = named.filter_map(|name| name.trim().parse().ok()).collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Connects both ends of an upgrade.
fn switched(
    streams: &Streams,
    client: Option<OnUpgrade>,
    mut response: http::Response<Incoming>,
) -> Result<Response, ApiError> {
    let backend = hyper::upgrade::on(&mut response);
    let client = client.ok_or_else(|| unreachable("the connection cannot be upgraded"))?;
    let stop = streams.stop.clone();
    streams.spawn(async move {
        let copying = async {
            let (client, backend) = tokio::try_join!(client, backend)?;
            let (mut client, mut backend) = (TokioIo::new(client), TokioIo::new(backend));
            copy_bidirectional(&mut client, &mut backend).await.ok();
            Ok::<_, hyper::Error>(())
        };
        tokio::select! {
            copied = copying => if let Err(error) = copied {
                tracing::debug!(%error, "a proxied connection was not upgraded");
            },
            () = stop.cancelled() => {}
        }
    });
    Ok(response.map(|_| Body::empty()))
}
