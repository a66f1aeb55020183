//! Discovery of the served kinds: one aggregated document for new clients, and one per group and version for old ones.

mod aggregated;
pub(super) mod etag;
mod legacy;
mod order;

use std::collections::BTreeSet;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use http::HeaderMap;
use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use super::accept::{self, Discovery};
use super::query::Query;
use super::response::{self, ApiResponse, ErrorResponse};
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
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = route(Router::new(), "/api", get(core));
    router = route(router, "/apis", get(groups)).route("/", get(root));
    for (group, version) in group_versions() {
        let resources = document(RESOURCES, move |_| legacy::resources(group, version));
        router = route(router, &path_of(group, version), resources);
    }
    for group in groups_in_order().filter(|group| !group.is_empty()) {
        let document = document(GROUP, move |_| legacy::group(group));
        router = route(router, &format!("/apis/{group}"), document);
    }
    router
}

/// Adds a path without and with a trailing slash.
fn route<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    path: &str,
    response: MethodRouter<S>,
) -> Router<S> {
    router
        .route(path, response.clone())
        .route(&format!("{path}/"), response)
}

/// Returns the document at `/`: the list of paths.
async fn root(query: Query, headers: HeaderMap) -> ApiResponse {
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
    for (group, version) in group_versions() {
        paths.insert(path_of(group, version));
        paths.insert(format!("/openapi/v3{}", path_of(group, version)));
        if !group.is_empty() {
            paths.insert(format!("/apis/{group}"));
        }
    }
    let pretty = response::is_pretty(&query, &headers);
    response::document(&json!({ "paths": paths }), pretty)
}

/// Returns the handler of a legacy document, which `encode` encodes in protobuf.
fn document<S: Clone + Send + Sync + 'static>(
    of: Encoded,
    document: impl Fn(&HeaderMap) -> Value + Clone + Send + Sync + 'static,
) -> MethodRouter<S> {
    get(move |query: Query, headers: HeaderMap| async move {
        let format = accept::discovery(&headers)?;
        let media = match format {
            Discovery::Legacy(media) => media,
            Discovery::Aggregated(_) => return Err(ErrorResponse(accept::not_acceptable())),
        };
        let pretty = response::is_pretty(&query, &headers);
        Ok(legacy::encode(&document(&headers), of, media, pretty)?)
    })
}

async fn core(query: Query, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    let legacy = |headers: &HeaderMap| (legacy::versions(headers), VERSIONS);
    negotiate(&query, &headers, |group| group.is_empty(), legacy)
}

async fn groups(query: Query, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    let legacy = |_: &HeaderMap| (legacy::groups(), GROUPS);
    negotiate(&query, &headers, |group| !group.is_empty(), legacy)
}

/// Returns the aggregated document if the client accepts it, else the legacy one.
fn negotiate(
    query: &Query,
    headers: &HeaderMap,
    wanted: fn(&str) -> bool,
    legacy: impl Fn(&HeaderMap) -> (Value, Encoded),
) -> Result<Response, ErrorResponse> {
    let pretty = response::is_pretty(query, headers);
    match accept::discovery(headers)? {
        Discovery::Aggregated(version) => {
            let document = aggregated::groups(wanted, version);
            let response = response::document(&document, pretty)
                .with_content_type(aggregated::content_type(version));
            Ok(etag::respond(response, headers))
        }
        Discovery::Legacy(media) => {
            let (document, of) = legacy(headers);
            Ok(legacy::encode(&document, of, media, pretty)?.into_response())
        }
    }
}

/// Returns every group with its versions, in the order of discovery: the core group first, and of each group the preferred
/// version first.
pub(super) fn group_versions() -> Vec<(&'static str, &'static str)> {
    let kinds = kinds().served();
    let all: BTreeSet<_> = kinds
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| order::key(a.0, a.1).cmp(&order::key(b.0, b.1)));
    all
}

/// Returns every group, in the order of discovery.
fn groups_in_order() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = group_versions()
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

fn kinds_of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    let kinds = kinds().served();
    kinds.filter(move |kind| kind.group == group && kind.version == version)
}

/// Returns the kind in which a subresource is read and written, by default that of its object.
pub(super) fn subresource_kind(kind: &'static Kind, subresource: &str) -> &'static Kind {
    let own = match subresource {
        "scale" => kinds().by_kind("autoscaling/v1", "Scale"),
        "binding" => kinds().by_kind("v1", "Binding"),
        "eviction" => kinds().by_kind("policy/v1", "Eviction"),
        "token" => kinds().by_kind("authentication.k8s.io/v1", "TokenRequest"),
        _ => None,
    };
    own.unwrap_or(kind)
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    if kind.is_review {
        return vec!["create"];
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
        _ => &["get", "patch", "update"],
    }
}

/// Returns the address by which the client reached this server.
fn server_addresses(headers: &HeaderMap) -> Value {
    let host = headers.get(http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": host }])
}
