//! Responses with a document, which is built when it is first requested.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use setpoint_openapi::{Built, Document};
use setpoint_proto::{ApiError, Reason};

use super::super::compression::{GZIP, accepts_gzip};
use super::super::discovery::etag;
use crate::offload::offload;

/// The assumed size of a document in bytes: building one is expensive.
const LARGE: usize = 1 << 20;

/// Returns the document after it was built.
pub(super) async fn built(document: &Document) -> &Built {
    match document.if_built() {
        Some(built) => built,
        None => offload(LARGE, || document.built()).await,
    }
}

/// Returns the document, or 304 if the client has it.
pub(super) async fn respond(
    document: &Document,
    content_type: &'static str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let built = built(document).await;
    let etag = format!("\"{}\"", built.hash());
    let mut response = match etag::is_known(headers, &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => body(built, headers).await?,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let vary = HeaderValue::from_static("Accept, Accept-Encoding");
    headers.insert(VARY, vary);
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(ETAG, etag);
    }
    Ok(response)
}

async fn body(built: &Built, headers: &HeaderMap) -> Result<Response, ApiError> {
    if accepts_gzip(headers) {
        let mut response = Response::new(Body::from(built.gzip()));
        response.headers_mut().insert(CONTENT_ENCODING, GZIP);
        return Ok(response);
    }
    let plain = offload(LARGE, || built.plain()).await;
    let plain = plain.map_err(|error| ApiError::new(Reason::InternalError, error.to_string()));
    Ok(Response::new(Body::from(plain?)))
}
