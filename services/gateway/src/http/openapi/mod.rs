//! OpenAPI: v3 with an index and a document for each group and version, and v2 with one document for everything.
//! kubectl uses them for `explain`, validation and apply. The documents themselves are those of `setpoint_openapi`.

mod document;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, json};
use setpoint_openapi::{Documents, Published};
use setpoint_proto::ApiError;

use super::accept;
use super::discovery::etag;
use super::not_found;
use super::response::{self, ErrorResponse};
use crate::aggregation::sort_by_priority;
use crate::registry::Registry;
use crate::request::Query;
use document::{built, respond};

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
    sort_by_priority(&mut remotes);
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
        Some(0) => respond(&published.v2_json, JSON, &headers).await?,
        Some(_) => respond(&published.v2_protobuf, PROTOBUF, &headers).await?,
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
    let remotes = registry.aggregator().used(&*registry).await?;
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
        let url = url(path, built(document).await.hash());
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
    let (hash, current) = (query.get("hash"), built(document).await.hash());
    if hash.is_some_and(|hash| hash != current) {
        let location = [(LOCATION, url(&path, current))];
        return Ok((StatusCode::MOVED_PERMANENTLY, location).into_response());
    }
    let mut response = respond(document, JSON, &headers).await?;
    if hash.is_some() {
        let forever = HeaderValue::from_static("public, immutable, max-age=31536000");
        response.headers_mut().insert(CACHE_CONTROL, forever);
    }
    Ok(response)
}

fn url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}
