//! The OpenAPI document of v2 of a server (upstream: the downloader of kube-aggregator's OpenAPI controller).
//!
//! ```text
//! /openapi/v2 ─▶ shape (types) ─▶ Specification ─▶ paths of the version, and what they refer to ─▶ compressed
//! ```

mod references;
mod shape;
mod specification;

use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use http::StatusCode;
use http::header::ETAG;
use sha2::{Digest as _, Sha256};

use super::Remote;
use super::documents::JSON;
use super::front_proxy::Certificate;
use crate::heavy::heavy;
use crate::http::{gunzip, gzip};
pub(crate) use specification::Specification;

/// The document of a server, as it was fetched last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Swagger {
    /// The part of the last document that was readable; `None` if there was none.
    pub(crate) filtered: Option<Arc<Filtered>>,
    etag: Option<String>,
    /// The hash of the document that was received last, readable or not.
    hash: Option<[u8; 32]>,
    /// The reason why there is no newer document, if it was logged.
    failure: Option<String>,
}

/// The part of a document that is about one version of a group.
#[derive(Debug, PartialEq)]
pub(crate) struct Filtered {
    /// The [`Specification`] in JSON, compressed.
    small: Bytes,
    /// Its size in bytes before.
    pub(crate) size: usize,
}

impl Filtered {
    fn of(specification: &Specification) -> Result<Self, String> {
        let plain = serde_json::to_vec(specification).map_err(|error| error.to_string())?;
        let small = gzip(&plain, Compression::default()).map_err(|error| error.to_string())?;
        let size = plain.len();
        Ok(Self { small, size })
    }

    /// Returns the specification.
    ///
    /// # Errors
    /// If it cannot be decompressed.
    pub(crate) fn specification(&self) -> Result<Specification, String> {
        let plain = gunzip(&self.small).map_err(|error| error.to_string())?;
        serde_json::from_slice(&plain).map_err(|error| error.to_string())
    }
}

/// A response of the server.
enum Fetched {
    /// The server has no document.
    Nothing,
    /// It is the one of before.
    Unchanged,
    Document(Bytes, Option<String>),
}

impl Remote {
    /// Fetches the document if it is another than before. One that cannot be fetched or used is logged once, and that of before stays.
    pub(super) async fn swagger(
        &self,
        certificate: &Arc<Certificate>,
        before: &Swagger,
    ) -> Swagger {
        let mut now = before.clone();
        let used = match self.fetch(certificate, before).await {
            Ok(Fetched::Nothing | Fetched::Unchanged) => return now,
            Ok(Fetched::Document(document, etag)) => {
                now.etag = etag;
                let hash = Some(Sha256::digest(&document).into());
                if now.hash == hash {
                    return now;
                }
                now.hash = hash;
                let prefix = format!("{}/", self.path());
                heavy(document.len(), || filtered(&document, &prefix)).await
            }
            Err(why) => Err(why),
        };
        match used {
            Ok(filtered) => (now.filtered, now.failure) = (Some(Arc::new(filtered)), None),
            Err(why) => {
                if now.failure.as_ref() != Some(&why) {
                    tracing::warn!(
                        name = self.name,
                        why,
                        "the OpenAPI v2 document of an APIService is left out"
                    );
                }
                now.failure = Some(why);
            }
        }
        now
    }

    async fn fetch(
        &self,
        certificate: &Arc<Certificate>,
        before: &Swagger,
    ) -> Result<Fetched, String> {
        let etag = before.etag.as_deref();
        let (status, headers, body) = self.get(certificate, "/openapi/v2", JSON, etag).await?;
        match status {
            StatusCode::NOT_MODIFIED if etag.is_some() => Ok(Fetched::Unchanged),
            StatusCode::NOT_FOUND => Ok(Fetched::Nothing),
            StatusCode::OK => {
                let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
                Ok(Fetched::Document(body, etag.map(str::to_owned)))
            }
            _ => Err(format!(
                "failed to retrieve openAPI spec, http error: {status}"
            )),
        }
    }
}

/// Returns the part of a document with the paths that have a prefix.
fn filtered(document: &[u8], prefix: &str) -> Result<Filtered, String> {
    let specification = Specification::parse(document)?;
    Filtered::of(&specification.with_paths(|path| path.starts_with(prefix))?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_kept_as_far_as_it_is_about_the_version() {
        let get = json!({ "get": { "responses": { "200": { "description": "OK" } } } });
        let document = json!({ "swagger": "2.0", "info": { "title": "a" }, "paths": {
            "/apis/a.io/v1/": get, "/apis/a.io/v1/as": get, "/apis/a.io/v10/as": get, "/version": get,
        } });
        let filtered = filtered(document.to_string().as_bytes(), "/apis/a.io/v1/").unwrap();
        let paths = filtered.specification().unwrap().paths;
        assert_eq!(
            paths.keys().collect::<Vec<_>>(),
            ["/apis/a.io/v1/", "/apis/a.io/v1/as"]
        );
    }
}
