//! Compression of large responses, and the headers that caches need.

use std::io::{self, Write as _};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, Entry, VARY};
use http::{HeaderMap, HeaderValue};

use crate::offload::offload;

/// The largest size in bytes of a response that is not compressed, as upstream.
const PLAIN_MAX: u64 = 128 << 10;

/// The encoding `gzip` in headers.
pub(super) const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Compresses a large response if the client accepts it. Streams stay as they are. Unless the handler says otherwise, a
/// response must not be cached.
pub(super) async fn compress(request: Request, next: Next) -> Response {
    let accepted = accepts_gzip(request.headers());
    let mut response = next.run(request).await;
    if let Entry::Vacant(unset) = response.headers_mut().entry(CACHE_CONTROL) {
        unset.insert(HeaderValue::from_static("no-cache, private"));
    }
    let plain = !response.headers().contains_key(CONTENT_ENCODING);
    let length = response.body().size_hint().exact();
    match length.filter(|length| accepted && plain && *length > PLAIN_MAX) {
        Some(_) => compressed(response).await,
        None => response,
    }
}

async fn compressed(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    // The body is in memory already, since its length is known.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let Ok(small) = offload(body.len(), || gzip(&body)).await else {
        return Response::from_parts(parts, Body::from(body));
    };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, GZIP);
    let vary = HeaderValue::from_static("Accept-Encoding");
    parts.headers.append(VARY, vary);
    Response::from_parts(parts, Body::from(small))
}

/// Returns whether the client accepts gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim() == "gzip" && !matches!(quality.trim(), "q=0" | "q=0.0")
    })
}

fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_if_it_is_listed() {
        for (value, accepted) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
        ] {
            let value = value.parse().unwrap();
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value)]);
            assert_eq!(accepts_gzip(&headers), accepted);
        }
    }
}
