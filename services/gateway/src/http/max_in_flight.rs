//! Limits the requests in flight: sets the deadline, reads the body, and takes a seat of flow control.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, ORIGIN, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use setpoint_host::serve::Peer;
use setpoint_model::Verb;
use setpoint_proto::{ApiError, Reason};

use super::accept::PROTOBUF;
use super::body;
use super::response::ErrorResponse;
use super::yaml::YAML;
use crate::request::flow_control::{Flow, FlowControl, Seat};
use crate::request::{RequestInfo, Route};

/// Calls the handler with the body in memory, while holding a seat. Watches, logs and connections have neither a
/// seat nor a deadline.
pub(super) async fn limit<F: Future<Output = Response>>(
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    match handle(request, next).await {
        Ok(response) => response,
        Err(error) => ErrorResponse(error).into_response(),
    }
}

async fn handle<F: Future<Output = Response>>(
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Result<Response, ApiError> {
    let control = request.extensions().get::<Arc<FlowControl>>().cloned();
    let info = request.extensions().get::<RequestInfo>().cloned();
    let (route, verb) = match &info {
        Some(info) if info.attributes.is_long_running() => return Ok(next(request).await),
        Some(info) => (info.route.clone(), info.verb),
        None => (None, None),
    };
    let peer = request.extensions().get::<Peer>().map(|Peer(peer)| *peer);
    let flow = Flow::of(peer, request.headers());
    let deadline = info.map_or(Ok(None), |info| info.timeout())?;
    let work = async {
        let request = read_body(request).await?;
        let _seat = match &control {
            Some(control) => seat(control, route.as_deref(), verb, flow).await?,
            None => None,
        };
        Ok(next(request).await)
    };
    match deadline {
        None => work.await,
        Some(deadline) => tokio::time::timeout(deadline, work)
            .await
            .unwrap_or_else(|_| {
                let message = "request did not complete within the allotted timeout";
                Err(ApiError::new(Reason::Timeout, message))
            }),
    }
}

/// Reads the body into memory, so that a slow client does not hold a seat while it sends.
async fn read_body(request: Request) -> Result<Request, ApiError> {
    let (parts, body) = request.into_parts();
    let body = match parts.method {
        Method::GET | Method::HEAD => Body::empty(),
        _ => {
            let body = body::read(body).await?;
            check_type(&parts.headers, &body)?;
            Body::from(body)
        }
    };
    Ok(Request::from_parts(parts, body))
}

/// Refuses a browser's body without a content type: pages of any site may send such a request without a preflight.
/// Other clients may omit the type, as `kubectl create --raw` does.
fn check_type(headers: &HeaderMap, body: &[u8]) -> Result<(), ApiError> {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    let browser = agent.is_some_and(|agent| agent.starts_with(b"Mozilla/"))
        || headers.contains_key(ORIGIN)
        || headers.contains_key("sec-fetch-site");
    match browser && !body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        true => Err(body::unsupported(&["application/json", YAML, PROTOBUF])),
        false => Ok(()),
    }
}

async fn seat(
    control: &FlowControl,
    route: Option<&Route>,
    verb: Option<Verb>,
    flow: Flow,
) -> Result<Option<Seat>, ApiError> {
    match route.zip(verb) {
        Some((route, verb)) => control.seat(verb, route.kind, &route.namespace, flow).await,
        None => control.catch_all(flow).await.map(Some),
    }
}
