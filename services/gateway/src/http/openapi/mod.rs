//! OpenAPI v3: an index, and a document for each group and version. kubectl uses them for `explain`, validation and apply.

mod comments;
mod paths;
mod schema;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use setpoint_codec::kinds;
use setpoint_model::hash::fnv32a;

use super::discovery::{group_versions, path_of, subresource_kind};
use super::not_found;
use super::query::Query;
use super::response::{self, ApiResponse, ErrorResponse};
use schema::Schemas;

/// A document, and the hash of it in its URL.
struct Document {
    json: Bytes,
    hash: String,
}

/// The documents by their path below `/openapi/v3/`.
static DOCUMENTS: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let versions = group_versions().into_iter();
    let documents = versions.map(|(group, version)| {
        let json = document(group, version).to_string();
        let hash = format!("{:08X}", fnv32a(json.as_bytes()));
        let path = path_of(group, version).trim_start_matches('/').to_owned();
        (
            path,
            Document {
                json: json.into(),
                hash,
            },
        )
    });
    documents.collect()
});

/// Returns the routes at and below `/openapi/v3`.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/openapi/v3", get(index))
        .route("/openapi/v3/{*path}", get(one))
}

async fn index(query: Query, headers: HeaderMap) -> ApiResponse {
    let paths = DOCUMENTS.iter().map(|(path, document)| {
        let url = json!({ "serverRelativeURL": document.url(path) });
        (path.clone(), url)
    });
    let index = json!({ "paths": paths.collect::<Map<_, _>>() });
    response::document(&index, response::is_pretty(&query, &headers))
}

async fn one(Path(path): Path<String>, query: Query) -> Result<Response, ErrorResponse> {
    let document = DOCUMENTS.get(&path).ok_or_else(not_found)?;
    let hash = query.get("hash");
    if hash.is_some_and(|hash| hash != document.hash) {
        return Ok(Redirect::permanent(&document.url(&path)).into_response());
    }
    let json = HeaderValue::from_static("application/json");
    let mut response = ApiResponse::new(json, document.json.clone()).into_response();
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", document.hash)) {
        headers.insert(ETAG, tag);
    }
    if hash.is_some() {
        let forever = HeaderValue::from_static("public, immutable, max-age=31536000");
        headers.insert(CACHE_CONTROL, forever);
    }
    Ok(response)
}

impl Document {
    fn url(&self, path: &str) -> String {
        format!("/openapi/v3/{path}?hash={}", self.hash)
    }
}

fn document(group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Schemas::new();
    let bodies = ["DeleteOptions", "Status"].into_iter();
    bodies
        .filter_map(|kind| kinds().by_kind("v1", kind))
        .for_each(|kind| schema::add_kind(&mut schemas, kind));
    for kind in kinds()
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
    {
        paths::add_kind(&mut paths, kind);
        schema::add_kind(&mut schemas, kind);
        for subresource in &kind.subresources {
            schema::add_kind(&mut schemas, subresource_kind(kind, subresource));
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Setpoint", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}
