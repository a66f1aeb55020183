//! The documents of OpenAPI v2 of other servers.
//!
//! ```text
//! document ─▶ shape (types) ─▶ Specification ─▶ paths of a version, and what they refer to ─▶ compressed
//! ```

mod references;
mod shape;
mod specification;

use bytes::Bytes;
use flate2::Compression;

use super::gzip::{gunzip, gzip};
pub(super) use specification::Specification;

/// The part of a document that is about one version of a group.
#[derive(Debug, PartialEq)]
pub struct Filtered {
    /// The [`Specification`] in JSON, compressed.
    small: Bytes,
    /// Its size in bytes before.
    pub(super) size: usize,
}

impl Filtered {
    /// Returns the part of a document with the paths that have a prefix.
    ///
    /// # Errors
    /// If the document cannot be read or used, with the reason.
    pub fn parse(document: &[u8], prefix: &str) -> Result<Self, String> {
        let specification = Specification::parse(document)?;
        Self::of(&specification.with_paths(|path| path.starts_with(prefix))?)
    }

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
    pub(super) fn specification(&self) -> Result<Specification, String> {
        let plain = gunzip(&self.small).map_err(|error| error.to_string())?;
        serde_json::from_slice(&plain).map_err(|error| error.to_string())
    }
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
        let filtered = Filtered::parse(document.to_string().as_bytes(), "/apis/a.io/v1/").unwrap();
        let paths = filtered.specification().unwrap().paths;
        assert_eq!(
            paths.keys().collect::<Vec<_>>(),
            ["/apis/a.io/v1/", "/apis/a.io/v1/as"]
        );
    }
}
