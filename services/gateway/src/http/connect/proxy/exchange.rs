//! The exchange of a request and a response with a backend, by HTTP/1.1.

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_SECURITY_POLICY, HOST, LOCATION};
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use setpoint_proto::{ApiError, NODE_HEADER, Reason};

use super::super::super::forwarding;
use super::super::super::host::host;
use super::super::ConnectRequest;
use super::backend::{Backend, unreachable};
use super::{links, location};

/// The policy of pages: scripts do not run, and their origin is none.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox");

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
    let own = host(&request.parts.uri, &request.parts.headers);
    let own = own.and_then(|host| HeaderValue::try_from(host).ok());
    let streams = request.streams.clone();
    let mut outgoing = outgoing(request, body, path)?;
    if let Some(host) = own
        .clone()
        .or_else(|| HeaderValue::try_from(&backend.host).ok())
    {
        // HTTP/1.1 requires one.
        outgoing.headers_mut().insert(HOST, host);
    }
    let client = outgoing.extensions_mut().remove::<OnUpgrade>();
    if let Some(agent) = &backend.agent {
        // One agent may serve many nodes.
        let node = HeaderValue::try_from(agent.node());
        let node = node.map_err(|error| unreachable(&error.to_string()))?;
        let headers = outgoing.headers_mut();
        headers.insert(HeaderName::from_static(NODE_HEADER), node);
    }
    let sent = forwarding::send(&streams, backend.connection, outgoing).await;
    let response = sent.map_err(|error| unreachable(&error.to_string()))?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let switched = forwarding::switch(&streams, client, response, ());
        return switched.ok_or_else(|| unreachable("the connection cannot be upgraded"));
    }
    let (mut head, body) = response.into_parts();
    let headers = &mut head.headers;
    forwarding::remove_hop_by_hop(headers);
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
    // Pages share the origin of the API: without a sandbox, their scripts could do whatever the user who looks at them
    // may. Of several policies each restricts, so that one of the page is kept beside it.
    headers.append(CONTENT_SECURITY_POLICY, SANDBOX);
    // As a stream of unknown length it is neither kept in memory nor compressed.
    let body = Body::from_stream(body.into_data_stream());
    let body = links::rewrite(headers, body, place);
    Ok(Response::from_parts(head, body))
}

/// Returns the request for the backend.
fn outgoing(request: ConnectRequest, body: Body, path: &str) -> Result<Request<Body>, ApiError> {
    let ConnectRequest { mut parts, .. } = request;
    let query = parts.uri.query().map(|query| format!("?{query}"));
    let uri = format!("{path}{}", query.unwrap_or_default());
    let uri: Uri = uri.parse().map_err(|error: http::uri::InvalidUri| {
        ApiError::new(Reason::BadRequest, error.to_string())
    })?;
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = parts.method.clone();
    *outgoing.headers_mut() = forwarding::headers(&mut parts);
    *outgoing.uri_mut() = uri;
    if let Some(upgrade) = parts.extensions.get::<OnUpgrade>() {
        outgoing.extensions_mut().insert(upgrade.clone());
    }
    Ok(outgoing)
}
