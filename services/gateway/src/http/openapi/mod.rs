//! OpenAPI: v3 with an index and a document for each group and version, and v2 with one document for everything. kubectl uses
//! them for `explain`, validation and apply.

mod comments;
mod document;
mod gnostic;
mod paths;
mod schema;
mod v2;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use setpoint_codec::kinds;

use super::accept;
use super::discovery::{etag, group_versions, path_of, subresource_kind};
use super::not_found;
use super::query::Query;
use super::response::{self, ErrorResponse};
use document::Document;
use schema::Schemas;

const JSON: &str = "application/json";
/// The media type of v2 in protobuf, and the deprecated one, which clients still request.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The documents of v3 by their path below `/openapi/v3/`.
static DOCUMENTS: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let versions = group_versions().into_iter();
    let documents = versions.map(|(group, version)| {
        let path = path_of(group, version).trim_start_matches('/').to_owned();
        let build = move || document(&[(group, version)]).to_string().into_bytes();
        (path, Document::new(build))
    });
    documents.collect()
});

/// The document of v2, in JSON and in protobuf.
static V2_JSON: LazyLock<Document> = LazyLock::new(|| Document::new(|| v2().to_string().into()));
static V2_PROTOBUF: LazyLock<Document> = LazyLock::new(|| Document::new(|| gnostic::encode(&v2())));

/// Returns the routes at and below `/openapi`.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/openapi/v2", get(swagger))
        .route("/openapi/v3", get(index))
        .route("/openapi/v3/", get(index))
        .route("/openapi/v3/{*path}", get(one))
}

async fn swagger(headers: HeaderMap) -> Result<Response, ErrorResponse> {
    let document = match accept::media_type(&headers, &[JSON, PROTOBUF, OLD_PROTOBUF]) {
        None => return Ok(StatusCode::NOT_ACCEPTABLE.into_response()),
        Some(0) => V2_JSON.respond(JSON, &headers).await?,
        Some(_) => V2_PROTOBUF.respond(PROTOBUF, &headers).await?,
    };
    Ok(document)
}

async fn index(query: Query, headers: HeaderMap) -> Response {
    let mut paths = Map::new();
    for (path, document) in DOCUMENTS.iter() {
        let url = url(path, document.hash().await);
        paths.insert(path.clone(), json!({ "serverRelativeURL": url }));
    }
    let index = json!({ "paths": paths });
    let response = response::document(&index, response::is_pretty(&query, &headers));
    etag::respond(response, &headers)
}

async fn one(
    Path(path): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let document = DOCUMENTS.get(&path).ok_or_else(not_found)?;
    if accept::media_type(&headers, &[JSON]).is_none() {
        return Ok(StatusCode::NOT_ACCEPTABLE.into_response());
    }
    let (hash, current) = (query.get("hash"), document.hash().await);
    if hash.is_some_and(|hash| hash != current) {
        let location = [(LOCATION, url(&path, current))];
        return Ok((StatusCode::MOVED_PERMANENTLY, location).into_response());
    }
    let mut response = document.respond(JSON, &headers).await?;
    if hash.is_some() {
        let forever = HeaderValue::from_static("public, immutable, max-age=31536000");
        response.headers_mut().insert(CACHE_CONTROL, forever);
    }
    Ok(response)
}

fn url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

fn v2() -> Value {
    v2::convert(document(&group_versions()))
}

/// Returns the document of v3 with the kinds of some groups and versions.
fn document(versions: &[(&str, &str)]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Schemas::new();
    let bodies = ["DeleteOptions", "Status"].into_iter();
    bodies
        .filter_map(|kind| kinds().by_kind("v1", kind))
        .for_each(|kind| schema::add_kind(&mut schemas, kind));
    for kind in kinds()
        .iter()
        .filter(|kind| versions.contains(&(kind.group.as_str(), kind.version.as_str())))
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
