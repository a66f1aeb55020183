//! The handler for objects of every kind: derives the verb from method, path and query, and calls the module of the verb.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::WARNING;
use http::{HeaderMap, Method, Uri};
use hyper::upgrade::OnUpgrade;

use setpoint_codec::rest::is_connect;
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use super::connect::{ConnectRequest, Streams, connect};
use super::query::Query;
use super::response::{ErrorFormat, ErrorResponse};
use super::route::Route;
use super::{delete, deprecation, not_allowed, not_found, read, watch, write};
use crate::access::Identity;
use crate::registry::Registry;

/// A request for an object or a collection.
pub(super) struct ObjectRequest {
    pub(super) registry: Arc<Registry>,
    pub(super) route: Route,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) user: Identity,
    /// The connection, if it can be upgraded.
    pub(super) upgrade: Option<OnUpgrade>,
    pub(super) streams: Streams,
    pub(super) body: Body,
}

/// Handles a request. Takes it as a whole: extractors would copy its head.
pub(super) async fn serve(State(registry): State<Arc<Registry>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let errors = ErrorFormat::of(&query, &parts.headers);
    let route: Option<Route> = parts.extensions.remove();
    let verb = (route.as_ref()).and_then(|route| verb(&parts.method, route, &parts.uri));
    let deprecation = (route.as_ref()).and_then(|route| deprecation::header(route.kind));
    let response = async {
        let route = route.ok_or_else(not_found)?;
        let user = parts.extensions.remove().unwrap_or_default();
        let streams = parts.extensions.get().cloned().unwrap_or_default();
        if is_connect(&route.subresource) || route.subresource == "log" {
            let request = ConnectRequest {
                registry,
                route,
                query,
                parts,
                user,
                streams,
            };
            return Box::pin(connect(request, body)).await;
        }
        let verb = verb.ok_or_else(not_allowed)?;
        let request = ObjectRequest {
            registry,
            route,
            query,
            headers: parts.headers,
            user,
            upgrade: parts.extensions.remove(),
            streams,
            body,
        };
        // Boxed once, since it is moved several times.
        Box::pin(respond(verb, request)).await
    };
    let response = response.await;
    let mut response = response.unwrap_or_else(|error| ErrorResponse(error).in_format(errors));
    if let Some(deprecation) = deprecation {
        response.headers_mut().append(WARNING, deprecation);
    }
    response
}

/// Calls the module of the verb.
async fn respond(verb: Verb, request: ObjectRequest) -> Result<Response, ApiError> {
    let response = match verb {
        Verb::Watch => return watch::watch(request).await,
        Verb::Get => read::get(request).await,
        Verb::List => read::list(request).await,
        Verb::Create => write::create(request).await,
        Verb::Update => write::update(request).await,
        Verb::Patch => write::patch(request).await,
        Verb::Delete => delete::one(request).await,
        Verb::DeleteCollection => delete::all(request).await,
    };
    Ok(response?.into_response())
}

/// Returns the verb of a request; `None` if the method is not allowed.
pub(super) fn verb(method: &Method, route: &Route, uri: &Uri) -> Option<Verb> {
    let everywhere = route.kind.namespaced && route.namespace.is_empty();
    let (named, part) = (!route.name.is_empty(), route.subresource.as_str());
    if route.kind.is_review {
        let creates = method == Method::POST && !everywhere && !named && !route.is_watch;
        return creates.then_some(Verb::Create);
    }
    if route.kind.is_computed {
        let reads = method == Method::GET && !route.is_watch && !watches(uri);
        return reads.then_some(if named { Verb::Get } else { Verb::List });
    }
    if route.is_watch {
        return (method == Method::GET).then_some(Verb::Watch);
    }
    if is_connect(part) {
        return None;
    }
    match (method.as_str(), named, part) {
        ("POST", true, "binding" | "eviction" | "token") => Some(Verb::Create),
        ("PUT", true, "finalize") => Some(Verb::Update),
        (_, _, "binding" | "eviction" | "token" | "finalize") => None,
        ("GET", true, "log") => Some(Verb::Get),
        (_, _, "log") => None,
        ("GET" | "HEAD", true, _) => Some(Verb::Get),
        ("PUT", true, _) => Some(Verb::Update),
        ("PATCH", true, _) => Some(Verb::Patch),
        ("DELETE", true, "") => Some(Verb::Delete),
        ("GET" | "HEAD", false, _) => Some(if watches(uri) {
            Verb::Watch
        } else {
            Verb::List
        }),
        ("POST", false, _) if !everywhere => Some(Verb::Create),
        ("DELETE", false, _) if !everywhere => Some(Verb::DeleteCollection),
        _ => None,
    }
}

/// Returns whether the query of a list asks for a watch.
fn watches(uri: &Uri) -> bool {
    Query::parse(uri.query().unwrap_or_default()).flag("watch")
}
