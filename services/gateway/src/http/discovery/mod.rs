//! Discovery: which kinds this server has, in one document for new clients and in many for old ones.

mod aggregated;
mod legacy;

use std::collections::BTreeSet;

use axum::Router;
use axum::routing::{MethodRouter, get};
use http::HeaderMap;
use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

use super::accept::{self, Form};
use super::query::Query;
use super::reply::{self, Failure, Reply};

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

/// The routes below `/api` and `/apis`, but for the objects themselves.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = both(Router::new(), "/api", get(core));
    router = both(router, "/apis", get(groups)).route("/", fixed(roots()));
    for (group, version) in group_versions() {
        let document = legacy::resources(group, version);
        let path = path_of(group, version);
        if !group.is_empty() {
            let document = legacy::group(group);
            router = both(router, &format!("/apis/{group}"), fixed(document));
        }
        router = both(router, &path, fixed(document));
    }
    router
}

/// Adds a path as it is and with a slash at its end.
fn both<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    path: &str,
    response: MethodRouter<S>,
) -> Router<S> {
    router
        .route(path, response.clone())
        .route(&format!("{path}/"), response)
}

/// The document at `/`: where else there is something to see.
fn roots() -> Value {
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
        reply::document(&document, reply::is_pretty(&query, &headers))
    })
}

async fn core(query: Query, headers: HeaderMap) -> Result<Reply, Failure> {
    either(&query, &headers, |group| group.is_empty(), legacy::versions)
}

async fn groups(query: Query, headers: HeaderMap) -> Result<Reply, Failure> {
    either(&query, &headers, |group| !group.is_empty(), legacy::groups)
}

/// The aggregated document for those who ask for it, the old one for others.
fn either(
    query: &Query,
    headers: &HeaderMap,
    wanted: fn(&str) -> bool,
    legacy: fn(&HeaderMap) -> Value,
) -> Result<Reply, Failure> {
    let pretty = reply::is_pretty(query, headers);
    Ok(match accept::discovery(headers)? {
        Form::Discovery(version) => {
            let document = aggregated::groups(wanted, version);
            reply::document(&document, pretty).typed(aggregated::content_type(version))
        }
        _ => reply::document(&legacy(headers), pretty),
    })
}

/// Every group with its version, the core group first.
pub(super) fn group_versions() -> BTreeSet<(&'static str, &'static str)> {
    let kinds = kinds().iter();
    kinds
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect()
}

/// Where the objects of a group and version live.
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

/// What a subresource is read and written as: its own kind, or that of the object it belongs to.
pub(super) fn subresource_kind(kind: &'static Kind, subresource: &str) -> &'static Kind {
    let own = match subresource {
        "scale" => kinds().by_kind("autoscaling/v1", "Scale"),
        "binding" => kinds().by_kind("v1", "Binding"),
        _ => None,
    };
    own.unwrap_or(kind)
}

/// Returns the verbs of a kind.
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

/// The address under which the client already knows this server.
fn servers(headers: &HeaderMap) -> Value {
    let host = headers.get(http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": host }])
}
