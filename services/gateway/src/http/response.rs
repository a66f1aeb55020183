//! Responses with a status, a content type, warnings and a body.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use setpoint_codec::{Kind, Object as _};
use setpoint_proto::ApiError;

use super::accept::{self, Media, PROTOBUF};
use super::encoding;
use super::yaml::{self, YAML};
use crate::request::{Query, audit};
use crate::warnings;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A response with a body in memory.
#[derive(Debug)]
pub(super) struct ApiResponse {
    status: StatusCode,
    content_type: HeaderValue,
    warnings: Vec<HeaderValue>,
    body: Bytes,
}

impl ApiResponse {
    /// Returns a response with status 200.
    pub(super) fn new(content_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            warnings: Vec::new(),
            body: body.into(),
        }
    }

    /// Returns a response with a JSON body, which ends with a newline.
    pub(super) fn json(body: Vec<u8>, pretty: bool) -> Self {
        let mut body = if pretty { indented(body) } else { body };
        body.push(b'\n');
        Self::new(JSON, body)
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the body for the audit of a request about objects of a kind; `None` if it has no object.
    pub(super) fn audited(&self, kind: &'static Kind) -> Option<audit::Body> {
        match self.content_type.as_bytes() {
            media if media.starts_with(PROTOBUF.as_bytes()) => {
                Some(audit::Body::Envelope(kind, self.body.clone()))
            }
            media if media.starts_with(YAML.as_bytes()) => {
                Some(audit::Body::Json(yaml::read(&self.body).ok()?.json))
            }
            media if media.starts_with(b"application/json") => {
                Some(audit::Body::Json(self.body.clone()))
            }
            _ => None,
        }
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn with_content_type(mut self, content_type: String) -> Self {
        self.content_type = content_type.parse().unwrap_or(JSON);
        self
    }

    /// Adds `Warning` headers, which kubectl prints.
    pub(super) fn with_warnings(mut self, warnings: &[String]) -> Self {
        self.warnings.extend(warnings::headers(warnings));
        self
    }
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        response
            .headers_mut()
            .insert(CONTENT_TYPE, self.content_type);
        for warning in self.warnings {
            response.headers_mut().append(WARNING, warning);
        }
        response
    }
}

/// The format of an error, from `Accept` and the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorFormat {
    media: Media,
    pretty: bool,
}

impl ErrorFormat {
    /// Returns the format that a client prefers.
    pub(super) fn of(query: &Query, headers: &HeaderMap) -> Self {
        Self {
            media: accept::errors(headers),
            pretty: is_pretty(query, headers),
        }
    }
}

/// An error, as a `Status` object in JSON.
#[derive(Debug)]
pub(super) struct ErrorResponse(pub(super) ApiError);

impl ErrorResponse {
    /// Returns the response in a format.
    pub(super) fn in_format(self, format: ErrorFormat) -> Response {
        let status = self.0.to_status();
        let encoded = encoding::encoded_status(&status, format.media, format.pretty);
        let Ok(encoded) = encoded else {
            return self.into_response();
        };
        self.respond(encoded)
    }

    fn respond(self, encoded: ApiResponse) -> Response {
        let Self(error) = self;
        audit::fail(&error);
        let code = StatusCode::from_u16(error.code());
        let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let encoded = encoded.with_status(code).with_warnings(&error.warnings);
        let mut response = encoded.into_response();
        let details = error.details.unwrap_or_default();
        if let seconds @ 1.. = details.retry_after_seconds {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let json = self.0.to_status().to_json();
        self.respond(ApiResponse::json(json, false))
    }
}

/// Returns a response with a JSON document.
pub(super) fn document(document: &Value, pretty: bool) -> ApiResponse {
    ApiResponse::json(document.to_string().into(), pretty)
}

/// Indents JSON. The order of fields stays.
fn indented(json: Vec<u8>) -> Vec<u8> {
    let mut indented = Vec::with_capacity(json.len() * 2);
    let mut reader = serde_json::Deserializer::from_slice(&json);
    let mut writer = serde_json::Serializer::pretty(&mut indented);
    match serde_transcode::transcode(&mut reader, &mut writer) {
        Ok(()) => indented,
        Err(_) => json,
    }
}

/// Returns whether JSON is to be indented: as `?pretty` says, by default for interactive clients.
pub(super) fn is_pretty(query: &Query, headers: &HeaderMap) -> bool {
    if query.all("pretty").next().is_some() {
        return query.flag("pretty");
    }
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    let interactive = ["curl", "Wget", "Mozilla/5.0"];
    agent.is_some_and(|agent| {
        interactive
            .iter()
            .any(|name| agent.starts_with(name.as_bytes()))
    })
}
