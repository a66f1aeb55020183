//! OpenAPI: v3 with an index and a document for each group and version, and v2 with one document for everything. kubectl uses
//! them for `explain`, validation and apply.
//!
//! ```text
//! messages ─▶ schema ─┐                ┌─▶ v3 documents
//!                     ├─▶ paths, schemas ┤
//! definitions ─▶ custom ┘                └─▶ v2 parts ─▶ JSON, protobuf
//!                           other servers ─▶ merge ┘
//! ```

pub(super) mod comments;
mod connect;
mod custom;
mod document;
mod gnostic;
mod merge;
mod parameters;
mod part;
mod paths;
mod published;
mod release;
mod schema;
mod v2;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use setpoint_codec::{Kind, kinds};
use setpoint_proto::ApiError;

use super::accept;
use super::connect::is_connect;
use super::discovery::{etag, subresource_kind};
use super::not_found;
use super::query::Query;
use super::response::{self, ErrorResponse};
use crate::registry::Registry;
use published::{Described, Documents, Published};
use schema::Schemas;

const JSON: &str = "application/json";
/// The media type of v2 in protobuf, and the deprecated one, which clients still request.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Returns the routes at and below `/openapi`.
pub(super) fn router() -> Router<Arc<Registry>> {
    Router::new()
        .route("/openapi/v2", get(swagger))
        .route("/openapi/v3", get(index))
        .route("/openapi/v3/", get(index))
        .route("/openapi/v3/{*path}", get(one))
        .layer(Extension(Arc::<Documents>::default()))
}

async fn published(documents: &Documents, registry: &Registry) -> Result<Arc<Published>, ApiError> {
    let mut remotes = registry.aggregator().used(registry).await?;
    merge::sort(&mut remotes);
    let others = remotes
        .iter()
        .filter_map(|remote| remote.server.documents().swagger.filtered.clone());
    Ok(documents.of(&registry.cache().kinds().custom(), others.collect()))
}

async fn swagger(
    State(registry): State<Arc<Registry>>,
    Extension(documents): Extension<Arc<Documents>>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let published = published(&documents, &registry).await?;
    let document = match accept::media_type(&headers, &[JSON, PROTOBUF, OLD_PROTOBUF]) {
        None => return Ok(StatusCode::NOT_ACCEPTABLE.into_response()),
        Some(0) => published.v2_json.respond(JSON, &headers).await?,
        Some(_) => published.v2_protobuf.respond(PROTOBUF, &headers).await?,
    };
    Ok(document)
}

async fn index(
    State(registry): State<Arc<Registry>>,
    Extension(documents): Extension<Arc<Documents>>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let published = published(&documents, &registry).await?;
    let remotes = registry.aggregator().used(&registry).await?;
    let remotes = remotes.iter().map(|remote| {
        let path = remote.path().trim_start_matches('/').to_owned();
        (path, remote.server.documents().openapi.clone())
    });
    let remotes: BTreeMap<_, _> = remotes.collect();
    let mut paths = Map::new();
    for (path, document) in published
        .v3()
        .filter(|(path, _)| !remotes.contains_key(*path))
    {
        let url = url(path, document.hash().await);
        paths.insert(path.clone(), json!({ "serverRelativeURL": url }));
    }
    for (path, url) in remotes {
        if let Some(url) = url {
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    let index = json!({ "paths": paths });
    let response = response::document(&index, response::is_pretty(&query, &headers));
    Ok(etag::respond(response, &headers))
}

async fn one(
    State(registry): State<Arc<Registry>>,
    Extension(documents): Extension<Arc<Documents>>,
    Path(path): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let published = published(&documents, &registry).await?;
    let document = published.v3_at(&path).ok_or_else(not_found)?;
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

/// Returns the document of v2 of the built-in kinds in parts, one for each kind, as the whole would take much memory at once.
fn built_in_parts() -> impl Iterator<Item = Value> {
    // Schemas of earlier parts stay as null.
    let mut schemas = body_schemas();
    kinds().served().map(move |kind| {
        let mut paths = Map::new();
        add_kind(&mut paths, &mut schemas, kind);
        let new = schemas.iter_mut().filter(|(_, schema)| !schema.is_null());
        let new = new.map(|(name, schema)| (name.clone(), schema.take()));
        v2::convert(document(paths, new.collect()))
    })
}

/// Returns the part of the document of v2 with a custom kind. The schemas that it refers to are in other parts.
fn part_of_custom((kind, definition): &Described) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Schemas::new());
    paths::add_kind(&mut paths, kind, definition);
    custom::add_kind(&mut schemas, kind, definition, custom::Form::V2);
    v2::convert(document(paths, schemas))
}

/// Returns the document of v3 with the custom kinds of a group and version.
fn document_of_custom(kinds: &[Described]) -> Value {
    let (mut paths, mut schemas) = (Map::new(), body_schemas());
    for (kind, definition) in kinds {
        paths::add_kind(&mut paths, kind, definition);
        custom::add_kind(&mut schemas, kind, definition, custom::Form::V3);
        custom::add_references(&mut schemas, kind, definition);
    }
    document(paths, schemas)
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
    let definition = kind.definition();
    paths::add_kind(paths, kind, &definition);
    schema::add_kind(schemas, kind);
    let subresources = definition.subresources.iter();
    for subresource in subresources.filter(|name| !is_connect(name)) {
        schema::add_kind(schemas, subresource_kind(kind, subresource));
    }
}

fn document(paths: Map<String, Value>, schemas: Schemas) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn info() -> Value {
    json!({ "title": "Setpoint", "version": env!("CARGO_PKG_VERSION") })
}
