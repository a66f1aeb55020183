//! A document that is built when it is first requested, and kept only in its compressed form.

use std::io::{self, Write};
use std::sync::OnceLock;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use setpoint_proto::{ApiError, Reason};
use sha2::{Digest as _, Sha256};

use super::super::compression::{GZIP, accepts_gzip, gunzip};
use super::super::discovery::etag;
use crate::heavy::heavy;

/// The size in bytes by which the work of building a document is estimated.
const LARGE: usize = 1 << 20;

/// Writes a document.
type Build = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

/// A document.
pub(super) struct Document {
    build: Box<Build>,
    built: OnceLock<Built>,
}

/// A document after it was built.
struct Built {
    gzip: Bytes,
    hash: String,
}

impl Document {
    pub(super) fn new(
        build: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            build: Box::new(build),
            built: OnceLock::new(),
        }
    }

    fn built(&self) -> &Built {
        self.built.get_or_init(|| {
            let mut writer = Writer::default();
            // Writing to memory does not fail; an incomplete document would be found by the tests.
            let _ = (self.build)(&mut writer);
            writer.finish()
        })
    }

    /// Returns the hash of the document.
    pub(super) async fn hash(&self) -> &str {
        match self.built.get() {
            Some(built) => &built.hash,
            None => heavy(LARGE, || &*self.built().hash).await,
        }
    }

    /// Returns the document, or 304 if the client has it.
    pub(super) async fn respond(
        &self,
        content_type: &'static str,
        headers: &HeaderMap,
    ) -> Result<Response, ApiError> {
        let hash = self.hash().await;
        let etag = format!("\"{hash}\"");
        let mut response = match etag::is_known(headers, &etag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.body(headers).await?,
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

    async fn body(&self, headers: &HeaderMap) -> Result<Response, ApiError> {
        let small = self.built().gzip.clone();
        if accepts_gzip(headers) {
            let mut response = Response::new(Body::from(small));
            response.headers_mut().insert(CONTENT_ENCODING, GZIP);
            return Ok(response);
        }
        let plain = heavy(LARGE, || gunzip(&small)).await;
        let plain = plain.map_err(|error| ApiError::new(Reason::InternalError, error.to_string()));
        Ok(Response::new(Body::from(plain?)))
    }
}

/// Compresses and hashes a document as it is written, so that the whole is never in memory.
struct Writer {
    gzip: GzEncoder<Vec<u8>>,
    hash: Sha256,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            gzip: GzEncoder::new(Vec::new(), Compression::default()),
            hash: Sha256::new(),
        }
    }
}

impl Writer {
    fn finish(self) -> Built {
        let mut gzip = self.gzip.finish().unwrap_or_default();
        gzip.shrink_to_fit();
        Built {
            gzip: gzip.into(),
            hash: etag::digits(&self.hash.finalize()),
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.gzip.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.gzip.flush()
    }
}
