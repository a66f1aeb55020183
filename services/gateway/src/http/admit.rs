//! The steps before a request's handler: its deadline is read, its body received, its seat taken.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, ORIGIN, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use setpoint_host::serve::Peer;
use setpoint_model::Verb;
use setpoint_proto::{ApiError, Reason};

use super::accept::PROTOBUF;
use super::query::Query;
use super::reply::Failure;
use super::resources::verb;
use super::route::Route;
use super::yaml::YAML;
use super::{body, timeout};
use crate::flow_control::{Flow, FlowControl, Seat};

/// Lets a request on to its handler once its body is there and it has a seat. Watches and logs need none, and have no deadline.
pub(super) async fn admit(
    Extension(control): Extension<Arc<FlowControl>>,
    request: Request,
    next: Next,
) -> Response {
    match admitted(&control, request, next).await {
        Ok(response) => response,
        Err(error) => Failure(error).into_response(),
    }
}

async fn admitted(
    control: &FlowControl,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let route = request.extensions().get::<Route>().cloned();
    let verb = route
        .as_ref()
        .and_then(|route| verb(request.method(), route, request.uri()));
    let logs = route
        .as_ref()
        .is_some_and(|route| route.subresource == "log");
    if verb == Some(Verb::Watch) || logs {
        return Ok(next.run(request).await);
    }
    let peer = request.extensions().get::<Peer>().map(|Peer(peer)| *peer);
    let flow = Flow::of(peer, request.headers());
    let given = timeout::timeout(&Query::parse(request.uri().query().unwrap_or_default()))?;
    let work = async {
        let request = received(request).await?;
        let _seat = seat(control, route.as_ref(), verb, flow).await?;
        Ok(next.run(request).await)
    };
    match given {
        None => work.await,
        Some(given) => tokio::time::timeout(given, work).await.unwrap_or_else(|_| {
            let message = "request did not complete within the allotted timeout";
            Err(ApiError::new(Reason::Timeout, message))
        }),
    }
}

/// The request with its body in memory: a client that sends slowly holds no seat meanwhile.
async fn received(request: Request) -> Result<Request, ApiError> {
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

/// Refuses a body of a browser that does not say its type: a page of any site may send such a body without having to ask.
/// Other programs may leave it out, as `kubectl create --raw` does.
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
