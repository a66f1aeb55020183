//! Discovery of what is served, by the gateway and by other servers: one aggregated document for new clients, and one
//! per group and version for old ones.

mod aggregated;
mod catalog;
pub(super) mod etag;
mod legacy;
mod metrics;
pub(super) mod order;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use http::{HeaderMap, Uri};
use serde_json::{Value, json};
use setpoint_codec::Kind;
use setpoint_codec::rest::path_of;

use super::accept::{self, Discovery};
use super::host::host;
use super::not_found;
use super::response::{self, ApiResponse, ErrorResponse};
use crate::registry::Registry;
use crate::request::Query;
pub(crate) use order::priorities;

use catalog::{Catalog, Version};
use legacy::{Encoded, GROUP, GROUPS, RESOURCES, VERSIONS};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Returns the routes of the discovery documents at and below `/`, `/api` and `/apis`.
pub(super) fn router() -> Router<Arc<Registry>> {
    let router = route(Router::new(), "/api", get(core));
    let router = route(router, "/api/{version}", get(core_resources));
    let router = route(router, "/apis", get(groups));
    let router = route(router, "/apis/{group}", get(one_group));
    let router = route(router, "/apis/{group}/{version}", get(resources));
    router.route("/", get(root))
}

/// Adds a path without and with a trailing slash.
fn route(
    router: Router<Arc<Registry>>,
    path: &str,
    response: MethodRouter<Arc<Registry>>,
) -> Router<Arc<Registry>> {
    router
        .route(path, response.clone())
        .route(&format!("{path}/"), response)
}

/// Returns the document at `/`: the list of paths.
async fn root(
    State(registry): State<Arc<Registry>>,
    query: Query,
    headers: HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    let fixed = [
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/healthz",
        "/healthz/etcd",
        "/healthz/log",
        "/healthz/ping",
        "/livez",
        "/livez/etcd",
        "/livez/log",
        "/livez/ping",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/readyz/etcd",
        "/readyz/log",
        "/readyz/ping",
        "/version",
    ];
    let mut paths: BTreeSet<String> = fixed.map(str::to_owned).into();
    for one in Catalog::of(&registry).await?.versions() {
        paths.extend(paths_of(one));
    }
    let pretty = response::is_pretty(&query, &headers);
    Ok(response::document(&json!({ "paths": paths }), pretty))
}

/// Returns the paths of the documents about a version of a group.
fn paths_of(one: &Version) -> impl Iterator<Item = String> {
    let path = path_of(&one.group, &one.version);
    let group = (!one.group.is_empty()).then(|| format!("/apis/{}", one.group));
    let document = one.is_documented().then(|| format!("/openapi/v3{path}"));
    [path].into_iter().chain(group).chain(document)
}

/// Returns the kinds that requests can name.
fn served(registry: &Registry) -> Vec<&'static Kind> {
    registry.cache().kinds().served().collect()
}

async fn core_resources(
    State(registry): State<Arc<Registry>>,
    Path(version): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    resources_of(&registry, ("", &version), &query, &headers).await
}

async fn resources(
    State(registry): State<Arc<Registry>>,
    Path((group, version)): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    resources_of(&registry, (&group, &version), &query, &headers).await
}

async fn resources_of(
    registry: &Registry,
    (group, version): (&str, &str),
    query: &Query,
    headers: &HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    let catalog = match group {
        "" => Catalog::local(registry),
        _ => Catalog::of(registry).await?,
    };
    let document = catalog.version(group, version).and_then(Version::resources);
    encoded(&document.ok_or_else(not_found)?, RESOURCES, query, headers)
}

async fn one_group(
    State(registry): State<Arc<Registry>>,
    Path(group): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    let catalog = Catalog::of(&registry).await?;
    let versions = catalog.group(&group).filter(|_| !group.is_empty());
    let document = versions.and_then(legacy::group);
    encoded(&document.ok_or_else(not_found)?, GROUP, &query, &headers)
}

/// Encodes a legacy document.
fn encoded(
    document: &Value,
    of: Encoded,
    query: &Query,
    headers: &HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    let media = match accept::discovery(headers)? {
        Discovery::Legacy(media) => media,
        Discovery::Aggregated(..) => return Err(ErrorResponse(accept::not_acceptable())),
    };
    let pretty = response::is_pretty(query, headers);
    Ok(legacy::encode(document, of, media, pretty)?)
}

async fn core(
    State(registry): State<Arc<Registry>>,
    query: Query,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let catalog = Catalog::local(&registry);
    let addresses = || server_addresses(&uri, &headers);
    let legacy = || (legacy::versions(&catalog, addresses()), VERSIONS);
    let aggregated = |version: &str| aggregated::groups(&catalog, str::is_empty, version);
    negotiate(&query, &headers, aggregated, legacy)
}

async fn groups(
    State(registry): State<Arc<Registry>>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let catalog = Catalog::of(&registry).await?;
    let legacy = || (legacy::groups(&catalog), GROUPS);
    let aggregated =
        |version: &str| aggregated::groups(&catalog, |group| !group.is_empty(), version);
    negotiate(&query, &headers, aggregated, legacy)
}

/// Returns the aggregated document if the client accepts it, else the legacy one.
fn negotiate(
    query: &Query,
    headers: &HeaderMap,
    aggregated: impl Fn(&str) -> Value,
    legacy: impl Fn() -> (Value, Encoded<'static>),
) -> Result<Response, ErrorResponse> {
    let pretty = response::is_pretty(query, headers);
    match accept::discovery(headers)? {
        Discovery::Aggregated(media, version) => {
            let response = aggregated::encode(&aggregated(version), version, media, pretty)?;
            Ok(etag::respond(response, headers))
        }
        Discovery::Legacy(media) => {
            let (document, of) = legacy();
            Ok(legacy::encode(&document, of, media, pretty)?.into_response())
        }
    }
}

/// Returns every group of kinds with its versions, in the order of discovery: the core group first, and of each group
/// the preferred version first.
pub(super) fn group_versions(kinds: &[&'static Kind]) -> Vec<(&'static str, &'static str)> {
    let all: BTreeSet<_> = (kinds.iter())
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| order::key(a.0, a.1).cmp(&order::key(b.0, b.1)));
    all
}

fn kinds_of(
    kinds: &[&'static Kind],
    group: &str,
    version: &str,
) -> impl Iterator<Item = &'static Kind> {
    let kinds = kinds.iter().copied();
    kinds.filter(move |kind| kind.group == group && kind.version == version)
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    if kind.is_review {
        return vec!["create"];
    }
    if kind.is_computed {
        return vec!["get", "list"];
    }
    let verbs = VERBS.iter().copied();
    verbs
        .filter(|verb| kind.deletes_collection || *verb != "deletecollection")
        .collect()
}

/// Returns the address that the client has used for this server.
fn server_addresses(uri: &Uri, headers: &HeaderMap) -> Value {
    let host = host(uri, headers).unwrap_or_default();
    json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": host }])
}
