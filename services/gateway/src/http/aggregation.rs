//! Middleware that forwards requests to the servers of APIServices (upstream: the proxy handler of kube-aggregator).
//!
//! Nothing is kept in memory: bodies are streams in both directions. Requests that end have a deadline; watches, logs
//! and connections end with either end, or at a shutdown. Errors are texts, as upstream's are.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _, stream};
use http::header::{CONTENT_TYPE, HOST, LOCATION, UPGRADE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use setpoint_kinds::Identity;
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::trace::TRACEPARENT;
use setpoint_proto::{ApiError, Reason};
use setpoint_telemetry as telemetry;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::connect::Streams;
use super::forwarding;
use super::response::ErrorResponse;
use crate::aggregation::{Error, Remote, set_user};
use crate::registry::Registry;
use crate::request::RequestInfo;

/// The time in which a request must end, if its client sets no shorter one (upstream: `--request-timeout`).
const TIMEOUT: Duration = Duration::from_secs(60);
/// The places of the OpenAPI documents of v3.
const OPENAPI: &str = "/openapi/v3";

/// Forwards a request if another server serves its group and version.
pub(super) async fn forward<F: Future<Output = Response>>(
    registry: &Registry,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    match remote_of(registry, request.uri().path()).await {
        None => next(request).await,
        Some(remote) => {
            // Boxed, since most requests are not forwarded.
            let response = Box::pin(exchange(registry, &remote, request)).await;
            response.unwrap_or_else(Failure::into_response)
        }
    }
}

/// Returns the server that serves a path below `/apis/<group>/<version>`, or the OpenAPI document about that.
async fn remote_of(registry: &Registry, path: &str) -> Option<Arc<Remote>> {
    let document = path.strip_prefix(OPENAPI);
    let mut segments = document.unwrap_or(path).strip_prefix("/apis/")?.split('/');
    let (group, version) = (segments.next()?, segments.next()?);
    if group.is_empty() || version.is_empty() || (document.is_some() && segments.next().is_some()) {
        return None;
    }
    registry.aggregator().find(registry, group, version).await
}

/// Sends a request to a server, and returns its response. An upgrade is passed on, too.
async fn exchange(
    registry: &Registry,
    remote: &Remote,
    request: Request,
) -> Result<Response, Failure> {
    if !remote.is_available {
        return Err(unavailable("service unavailable"));
    }
    let permit = remote.server.admit().ok_or_else(busy)?;
    let deadline = deadline(&request)?;
    let streams = request
        .extensions()
        .get::<Streams>()
        .cloned()
        .unwrap_or_default();
    let certificate = registry
        .aggregator()
        .front_proxy
        .certificate(registry)
        .await;
    let certificate = certificate.map_err(|error| unreachable(&error.message))?;
    let (outgoing, client) = outgoing(remote, request)?;
    let sent = remote.server.send(certificate, outgoing);
    let response = match deadline {
        None => sent.await,
        Some(deadline) => timeout_at(deadline, sent).await.map_err(|_| too_late())?,
    };
    let response = response.map_err(|error| match error {
        Error::Tls(why) => Failure::Text(StatusCode::INTERNAL_SERVER_ERROR, why),
        Error::Call(why) => unreachable(&why),
    })?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let switched = forwarding::switch(&streams, client, response, permit);
        return switched.ok_or_else(|| unreachable("the connection cannot be upgraded"));
    }
    if response.status().is_redirection() && response.headers().contains_key(LOCATION) {
        let why = "the backend attempted to redirect this request, which is not permitted";
        return Err(Failure::Text(StatusCode::BAD_GATEWAY, why.to_owned()));
    }
    Ok(incoming(
        response,
        Relay {
            deadline,
            stop: streams.stop,
            _permit: permit,
        },
    ))
}

/// Returns the request for the server, and the connection of the client if it can be upgraded.
fn outgoing(
    remote: &Remote,
    request: Request,
) -> Result<(http::Request<Body>, Option<OnUpgrade>), ApiError> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let url: Uri = remote
        .server
        .url(path)
        .parse()
        .map_err(|error: http::uri::InvalidUri| {
            ApiError::new(Reason::BadRequest, error.to_string())
        })?;
    let mut headers = forwarding::headers(&mut parts);
    headers.remove(HOST);
    let user: Identity = parts.extensions.remove().unwrap_or_default();
    set_user(&mut headers, &user);
    let span = telemetry::Span::current().traceparent();
    if let Some(span) = span.and_then(|span| HeaderValue::try_from(span.to_string()).ok()) {
        headers.insert(TRACEPARENT, span);
    }
    let mut outgoing = http::Request::new(body);
    *outgoing.method_mut() = parts.method;
    *outgoing.uri_mut() = url;
    *outgoing.headers_mut() = headers;
    Ok((outgoing, parts.extensions.remove()))
}

/// Returns the deadline of a request; `None` for long-running ones.
fn deadline(request: &Request) -> Result<Option<Instant>, ApiError> {
    let info = request.extensions().get::<RequestInfo>();
    let lasts = info.is_some_and(|info| info.attributes.is_long_running());
    if lasts || request.headers().contains_key(UPGRADE) {
        return Ok(None);
    }
    let limit = info.map_or(Ok(None), RequestInfo::timeout)?;
    let limit = limit.map_or(TIMEOUT, |limit| limit.min(TIMEOUT));
    Ok(Some(Instant::now() + limit))
}

/// The limits and resources of a response that is passed on, held until its end.
struct Relay {
    deadline: Option<Instant>,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

fn incoming(response: http::Response<Incoming>, relay: Relay) -> Response {
    let (mut head, body) = response.into_parts();
    forwarding::remove_hop_by_hop(&mut head.headers);
    let data = Body::new(body).into_data_stream();
    Response::from_parts(head, Body::from_stream(relay.pass(data)))
}

impl Relay {
    /// Passes a body on. One that is cut off by its deadline ends with an error, so that the client does not take it
    /// for complete.
    fn pass(
        self,
        body: impl Stream<Item = Result<Bytes, axum::Error>> + Send + Unpin + 'static,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold((self, body), |(relay, mut body)| async move {
            let part = relay.next(&mut body).await?;
            Some((part, (relay, body)))
        })
    }

    async fn next(
        &self,
        body: &mut (impl Stream<Item = Result<Bytes, axum::Error>> + Unpin),
    ) -> Option<io::Result<Bytes>> {
        let next = body.next();
        let part = async {
            match self.deadline {
                None => next.await.map(|part| part.map_err(io::Error::other)),
                Some(deadline) => match timeout_at(deadline, next).await {
                    Ok(part) => part.map(|part| part.map_err(io::Error::other)),
                    Err(_) => Some(Err(io::ErrorKind::TimedOut.into())),
                },
            }
        };
        self.stop.run_until_cancelled(part).await.flatten()
    }
}

/// The reason why a request is not forwarded.
enum Failure {
    Refused(ApiError),
    /// An error as Go's servers write one.
    Text(StatusCode, String),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl Failure {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            Self::Refused(error) => return ErrorResponse(error).into_response(),
            Self::Text(status, message) => (status, message),
        };
        let headers = [
            (CONTENT_TYPE, "text/plain; charset=utf-8"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (status, headers, format!("{message}\n")).into_response()
    }
}

fn unavailable(why: &str) -> Failure {
    Failure::Text(StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
}

fn unreachable(why: &str) -> Failure {
    unavailable(&format!("error trying to reach service: {why}"))
}

fn busy() -> ApiError {
    let message = "Too many requests, please try again later.";
    ApiError::new(Reason::TooManyRequests, message).with_details(StatusDetails {
        retry_after_seconds: 1,
        ..Default::default()
    })
}

fn too_late() -> ApiError {
    let message = "request did not complete within the allotted timeout";
    ApiError::new(Reason::Timeout, message)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use setpoint_codec::KindTable;

    use super::*;

    fn has_deadline(path: &str, upgrade: bool) -> bool {
        let uri: Uri = path.parse().unwrap();
        let info = RequestInfo::of(&KindTable::default(), &Method::GET, &uri);
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(info);
        if upgrade {
            let websocket = HeaderValue::from_static("websocket");
            request.headers_mut().insert(UPGRADE, websocket);
        }
        deadline(&request).unwrap().is_some()
    }

    #[test]
    fn requests_that_last_and_upgrades_have_no_deadline() {
        assert!(has_deadline("/apis/example.com/v1/flunders", false));
        assert!(has_deadline("/apis/example.com/v1", false));
        assert!(!has_deadline(
            "/apis/example.com/v1/flunders?watch=true",
            false
        ));
        assert!(!has_deadline("/apis/example.com/v1/flunders/b/other", true));
    }
}
