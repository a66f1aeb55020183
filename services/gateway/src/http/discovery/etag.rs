//! Discovery documents with an ETag, so that clients that keep them need not receive them again.

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};

use super::super::response::ApiResponse;

/// Returns a quoted ETag of a document.
pub(in crate::http) fn etag(document: &[u8]) -> String {
    format!("\"{}\"", hash(document))
}

/// Returns the hash of a document in hexadecimal digits.
pub(in crate::http) fn hash(document: &[u8]) -> String {
    digits(&Sha256::digest(document))
}

/// Returns bytes in hexadecimal digits.
pub(in crate::http) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Returns whether the client has the document of this ETag.
pub(in crate::http) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    known.any(|known| known.trim().trim_start_matches("W/") == etag)
}

/// Returns the response, or 304 without a body if the client has it.
pub(in crate::http) fn respond(response: ApiResponse, headers: &HeaderMap) -> Response {
    let etag = etag(response.body());
    let mut response = match is_known(headers, &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => response.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(ETAG, etag);
    }
    response
}
