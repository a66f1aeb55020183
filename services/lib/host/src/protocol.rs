//! The protocol of a request, and errors in it.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use serde_json::Value;
use setpoint_proto::ApiError;
use tonic::Status;

/// The protocol in which a client expects its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP: an error is a `Status` object in JSON.
    Http,
    /// gRPC: an error is a status in trailers.
    Grpc,
}

impl Protocol {
    /// Returns the protocol of a request with these headers.
    pub fn of(headers: &HeaderMap) -> Self {
        let content = headers.get(CONTENT_TYPE);
        match content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc")) {
            true => Self::Grpc,
            false => Self::Http,
        }
    }

    /// Returns the name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }

    /// Returns a response with an error.
    pub fn error_response(self, error: ApiError) -> Response<Body> {
        match self {
            Self::Grpc => Status::from(error).into_http(),
            Self::Http => status_response(&error),
        }
    }
}

fn status_response(error: &ApiError) -> Response<Body> {
    let mut status = serde_json::to_value(error.to_status()).unwrap_or(Value::Null);
    status["apiVersion"] = "v1".into();
    status["kind"] = "Status".into();
    let mut response = Response::new(Body::from(status.to_string()));
    let code = StatusCode::from_u16(error.code());
    *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let seconds = error
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds);
    if let Some(seconds @ 1..) = seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
