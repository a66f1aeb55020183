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
use setpoint_codec::{Kind, kinds};

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
        let build = move || document_of(group, version).to_string().into_bytes();
        (path, Document::new(build))
    });
    documents.collect()
});

/// The document of v2, in JSON and in protobuf.
static V2_JSON: LazyLock<Document> = LazyLock::new(|| Document::new(v2_json));
static V2_PROTOBUF: LazyLock<Document> = LazyLock::new(|| Document::new(v2_protobuf));

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

/// Calls `each` with the document of v2 in parts, one for each kind, as the whole would take much memory at once.
fn for_each_part_of_v2(mut each: impl FnMut(&Value)) {
    // Schemas of earlier parts stay as null.
    let mut schemas = body_schemas();
    for kind in kinds().served() {
        let mut paths = Map::new();
        add_kind(&mut paths, &mut schemas, kind);
        let new = schemas.iter_mut().filter(|(_, schema)| !schema.is_null());
        let new = new.map(|(name, schema)| (name.clone(), schema.take()));
        let part = document(paths, new.collect());
        each(&v2::convert(part));
    }
}

fn v2_json() -> Vec<u8> {
    let (mut paths, mut definitions) = (Vec::new(), Vec::new());
    let mut head = Value::Null;
    for_each_part_of_v2(|part| {
        append_fields(&mut paths, &part["paths"]);
        append_fields(&mut definitions, &part["definitions"]);
        head = json!({ "swagger": part["swagger"], "info": part["info"] });
    });
    let mut json = head.to_string().into_bytes();
    json.pop();
    let middle: [&[u8]; 5] = [
        br#","paths":{"#,
        &paths,
        br#"},"definitions":{"#,
        &definitions,
        b"}}",
    ];
    json.extend(middle.concat());
    json
}

/// Appends the fields of an object without its braces.
fn append_fields(json: &mut Vec<u8>, object: &Value) {
    let text = object.to_string();
    let fields = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let fields = fields.unwrap_or_default();
    if !json.is_empty() && !fields.is_empty() {
        json.push(b',');
    }
    json.extend_from_slice(fields.as_bytes());
}

/// Returns the parts one after another: protobuf merges them.
fn v2_protobuf() -> Vec<u8> {
    let mut encoded = Vec::new();
    for_each_part_of_v2(|part| encoded.extend(gnostic::encode(part)));
    encoded
}

/// Returns the document of v3 with the kinds of a group and version.
fn document_of(group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = body_schemas();
    let kinds = kinds().served();
    kinds
        .filter(|kind| kind.group == group && kind.version == version)
        .for_each(|kind| add_kind(&mut paths, &mut schemas, kind));
    document(paths, schemas)
}

/// Returns the schemas of bodies that every group has.
fn body_schemas() -> Schemas {
    let mut schemas = Schemas::new();
    let bodies = ["DeleteOptions", "Status"].into_iter();
    bodies
        .filter_map(|kind| kinds().by_kind("v1", kind))
        .for_each(|kind| schema::add_kind(&mut schemas, kind));
    schemas
}

fn add_kind(paths: &mut Map<String, Value>, schemas: &mut Schemas, kind: &'static Kind) {
    paths::add_kind(paths, kind);
    schema::add_kind(schemas, kind);
    for subresource in &kind.subresources {
        schema::add_kind(schemas, subresource_kind(kind, subresource));
    }
}

fn document(paths: Map<String, Value>, schemas: Schemas) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Setpoint", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}
