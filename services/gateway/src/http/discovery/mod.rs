//! Discovery of the served kinds: one aggregated document for new clients, and one per group and version for old ones.

mod aggregated;
mod legacy;

use std::collections::BTreeSet;

use axum::Router;
use axum::routing::{MethodRouter, get};
use http::HeaderMap;
use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use super::accept::{self, Format};
use super::query::Query;
use super::response::{self, ApiResponse, ErrorResponse};

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
    router = route(router, "/apis", get(groups)).route("/", fixed(root_paths()));
    for (group, version) in group_versions() {
        let document = legacy::resources(group, version);
        let path = path_of(group, version);
        if !group.is_empty() {
            let document = legacy::group(group);
            router = route(router, &format!("/apis/{group}"), fixed(document));
        }
        router = route(router, &path, fixed(document));
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
fn root_paths() -> Value {
    let fixed = [
        "/api",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    let mut paths: BTreeSet<String> = fixed.map(str::to_owned).into();
    for (group, version) in group_versions() {
        paths.insert(path_of(group, version));
        if !group.is_empty() {
            paths.insert(format!("/apis/{group}"));
        }
    }
    json!({ "paths": paths })
}

fn fixed<S: Clone + Send + Sync + 'static>(document: Value) -> MethodRouter<S> {
    get(move |query: Query, headers: HeaderMap| async move {
        response::document(&document, response::is_pretty(&query, &headers))
    })
}

async fn core(query: Query, headers: HeaderMap) -> Result<ApiResponse, ErrorResponse> {
    negotiate(&query, &headers, |group| group.is_empty(), legacy::versions)
}

async fn groups(query: Query, headers: HeaderMap) -> Result<ApiResponse, ErrorResponse> {
    negotiate(&query, &headers, |group| !group.is_empty(), legacy::groups)
}

/// Returns the aggregated document if the client accepts it, else the legacy one.
fn negotiate(
    query: &Query,
    headers: &HeaderMap,
    wanted: fn(&str) -> bool,
    legacy: fn(&HeaderMap) -> Value,
) -> Result<ApiResponse, ErrorResponse> {
    let pretty = response::is_pretty(query, headers);
    Ok(match accept::discovery(headers)? {
        Format::Discovery(version) => {
            let document = aggregated::groups(wanted, version);
            response::document(&document, pretty)
                .with_content_type(aggregated::content_type(version))
        }
        _ => response::document(&legacy(headers), pretty),
    })
}

/// Returns every group with its versions, the core group first.
pub(super) fn group_versions() -> BTreeSet<(&'static str, &'static str)> {
    let kinds = kinds().iter();
    kinds
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect()
}

/// Returns the path of a group and version.
pub(super) fn path_of(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        _ => format!("/apis/{group}/{version}"),
    }
}

fn kinds_of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    let kinds = kinds().iter();
    kinds.filter(move |kind| kind.group == group && kind.version == version)
}

/// Returns the kind in which a subresource is read and written, by default that of its object.
pub(super) fn subresource_kind(kind: &'static Kind, subresource: &str) -> &'static Kind {
    let own = match subresource {
        "scale" => kinds().by_kind("autoscaling/v1", "Scale"),
        "binding" => kinds().by_kind("v1", "Binding"),
        _ => None,
    };
    own.unwrap_or(kind)
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    let collections = crate::kinds::of(kind).deletes_collections();
    let verbs = VERBS.iter().copied();
    verbs
        .filter(|verb| collections || *verb != "deletecollection")
        .collect()
}

fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "binding" => &["create"],
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
