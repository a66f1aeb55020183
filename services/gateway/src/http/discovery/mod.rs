//! Discovery of the served kinds: one aggregated document for new clients, and one per group and version for old ones.

mod aggregated;
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
use http::HeaderMap;
use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use super::accept::{self, Discovery};
use super::not_found;
use super::query::Query;
use super::response::{self, ApiResponse, ErrorResponse};
use crate::registry::Registry;
pub(crate) use order::group_rank;

use legacy::{Encoded, GROUP, GROUPS, RESOURCES, VERSIONS};
use metrics::Group;

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
) -> ApiResponse {
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
    for group in metrics::groups(&registry) {
        paths.extend(group.paths());
    }
    for (group, version) in group_versions(&served(&registry)) {
        paths.insert(path_of(group, version));
        paths.insert(format!("/openapi/v3{}", path_of(group, version)));
        if !group.is_empty() {
            paths.insert(format!("/apis/{group}"));
        }
    }
    let pretty = response::is_pretty(&query, &headers);
    response::document(&json!({ "paths": paths }), pretty)
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
    resources_of(&registry, ("", &version), &query, &headers)
}

async fn resources(
    State(registry): State<Arc<Registry>>,
    Path((group, version)): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    resources_of(&registry, (&group, &version), &query, &headers)
}

fn resources_of(
    registry: &Registry,
    wanted: (&str, &str),
    query: &Query,
    headers: &HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    let kinds = served(registry);
    let mut known = group_versions(&kinds).into_iter();
    let document = match known.find(|known| *known == wanted) {
        Some((group, version)) => Some(legacy::resources(&kinds, group, version)),
        None => metrics::find(registry, wanted.0).and_then(|group| group.resources(wanted.1)),
    };
    let document = document.ok_or_else(not_found)?;
    encoded(&document, RESOURCES, query, headers)
}

async fn one_group(
    State(registry): State<Arc<Registry>>,
    Path(group): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<ApiResponse, ErrorResponse> {
    let kinds = served(&registry);
    let mut known = groups_in_order(&kinds).filter(|known| !known.is_empty());
    let document = match known.find(|known| *known == group) {
        Some(group) => Some(legacy::group(&kinds, group)),
        None => metrics::find(&registry, &group).map(|group| group.document()),
    };
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
        Discovery::Aggregated(_) => return Err(ErrorResponse(accept::not_acceptable())),
    };
    let pretty = response::is_pretty(query, headers);
    Ok(legacy::encode(document, of, media, pretty)?)
}

async fn core(
    State(registry): State<Arc<Registry>>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let kinds = served(&registry);
    let legacy = || (legacy::versions(&kinds, &headers), VERSIONS);
    let aggregated = |version: &str| aggregated::groups(&kinds, str::is_empty, version);
    negotiate(&query, &headers, aggregated, legacy)
}

async fn groups(
    State(registry): State<Arc<Registry>>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let kinds = served(&registry);
    let metrics = metrics::groups(&registry);
    let legacy = || {
        let mut document = legacy::groups(&kinds);
        append(&mut document["groups"], metrics.iter().map(Group::entry));
        (document, GROUPS)
    };
    let aggregated = |version: &str| {
        let mut document = aggregated::groups(&kinds, |group| !group.is_empty(), version);
        append(
            &mut document["items"],
            metrics.iter().map(Group::aggregated),
        );
        document
    };
    negotiate(&query, &headers, aggregated, legacy)
}

/// Adds entries to a list of a document.
fn append(list: &mut Value, entries: impl Iterator<Item = Value>) {
    if let Some(list) = list.as_array_mut() {
        list.extend(entries);
    }
}

/// Returns the aggregated document if the client accepts it, else the legacy one.
fn negotiate(
    query: &Query,
    headers: &HeaderMap,
    aggregated: impl Fn(&str) -> Value,
    legacy: impl Fn() -> (Value, Encoded),
) -> Result<Response, ErrorResponse> {
    let pretty = response::is_pretty(query, headers);
    match accept::discovery(headers)? {
        Discovery::Aggregated(version) => {
            let response = response::document(&aggregated(version), pretty)
                .with_content_type(aggregated::content_type(version));
            Ok(etag::respond(response, headers))
        }
        Discovery::Legacy(media) => {
            let (document, of) = legacy();
            Ok(legacy::encode(&document, of, media, pretty)?.into_response())
        }
    }
}

/// Returns every group with its versions, in the order of discovery: the core group first, and of each group the preferred
/// version first.
pub(super) fn group_versions(kinds: &[&'static Kind]) -> Vec<(&'static str, &'static str)> {
    let all: BTreeSet<_> = (kinds.iter())
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| order::key(a.0, a.1).cmp(&order::key(b.0, b.1)));
    all
}

/// Returns every group, in the order of discovery.
fn groups_in_order(kinds: &[&'static Kind]) -> impl Iterator<Item = &'static str> + use<> {
    let mut names: Vec<_> = group_versions(kinds)
        .into_iter()
        .map(|(group, _)| group)
        .collect();
    names.dedup();
    names.into_iter()
}

/// Returns the path of a group and version.
pub(super) fn path_of(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        _ => format!("/apis/{group}/{version}"),
    }
}

fn kinds_of(
    kinds: &[&'static Kind],
    group: &str,
    version: &str,
) -> impl Iterator<Item = &'static Kind> {
    let kinds = kinds.iter().copied();
    kinds.filter(move |kind| kind.group == group && kind.version == version)
}

/// Returns the kind in which a subresource is read and written, by default that of its object.
pub(super) fn subresource_kind(kind: &'static Kind, subresource: &str) -> &'static Kind {
    let own = match subresource {
        "scale" => kinds().by_kind("autoscaling/v1", "Scale"),
        "binding" => kinds().by_kind("v1", "Binding"),
        "eviction" => kinds().by_kind("policy/v1", "Eviction"),
        "token" => kinds().by_kind("authentication.k8s.io/v1", "TokenRequest"),
        "exec" => kinds().by_kind("v1", "PodExecOptions"),
        "attach" => kinds().by_kind("v1", "PodAttachOptions"),
        "portforward" => kinds().by_kind("v1", "PodPortForwardOptions"),
        "proxy" => kinds().by_kind("v1", &format!("{}ProxyOptions", kind.kind)),
        _ => None,
    };
    own.unwrap_or(kind)
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    if kind.is_review {
        return vec!["create"];
    }
    if kind.is_computed {
        return vec!["get", "list"];
    }
    let collections = crate::kinds::of(kind).deletes_collections();
    let verbs = VERBS.iter().copied();
    verbs
        .filter(|verb| collections || *verb != "deletecollection")
        .collect()
}

/// Returns the verbs of a subresource.
pub(super) fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "binding" | "eviction" | "token" => &["create"],
        "finalize" => &["update"],
        "log" => &["get"],
        "exec" | "attach" | "portforward" => &["create", "get"],
        "proxy" => &["create", "delete", "get", "patch", "update"],
        _ => &["get", "patch", "update"],
    }
}

/// Returns the address by which the client reached this server.
fn server_addresses(headers: &HeaderMap) -> Value {
    let host = headers.get(http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": host }])
}
