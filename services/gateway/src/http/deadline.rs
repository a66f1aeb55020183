//! Sets the deadline of a request, and reads its body into memory.

use std::pin::pin;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use http::header::{CONTENT_TYPE, ORIGIN, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use setpoint_proto::{ApiError, Reason};

use super::accept::PROTOBUF;
use super::body;
use super::response::ErrorResponse;
use super::yaml::YAML;
use crate::request::RequestInfo;
use crate::request::flow_control::Admission;

/// Calls the handler with the body in memory. Watches, logs and connections have no deadline.
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
    let info = request.extensions().get::<RequestInfo>();
    if info.is_some_and(|info| info.attributes.is_long_running()) {
        return Ok(next(request).await);
    }
    let deadline = info.map_or(Ok(None), RequestInfo::timeout)?;
    let work = async {
        let request = with_body(request).await?;
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

/// Reads the body into memory. If that is still on its way, the request has no seat until it has arrived, so that
/// clients which send slowly, or never, hold none.
async fn with_body(request: Request) -> Result<Request, ApiError> {
    let admission = request.extensions().get::<Admission>().cloned();
    let mut reading = pin!(read_body(request));
    if let Some(read) = reading.as_mut().now_or_never() {
        return read;
    }
    let Some(admission) = admission else {
        return reading.await;
    };
    admission.rest();
    let request = reading.await?;
    admission.resume().await?;
    Ok(request)
}

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
