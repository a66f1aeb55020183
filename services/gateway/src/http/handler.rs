//! The handler for objects of every kind: calls the module of the verb.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use futures::TryFutureExt as _;
use futures::future::BoxFuture;
use http::HeaderMap;
use hyper::upgrade::OnUpgrade;
use setpoint_codec::Kind;
use setpoint_codec::rest::{is_connect, subresource_kind};
use setpoint_kinds::Identity;
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use super::connect::{ConnectRequest, Streams, connect};
use super::response::{ApiResponse, ErrorFormat, ErrorResponse};
use super::{delete, deprecation, not_allowed, not_found, read, watch, write};
use crate::registry::Registry;
use crate::request::flow_control::Admission;
use crate::request::{Attributes, Query, RequestInfo, Route, audit};
use crate::warnings;

/// A request for an object or a collection.
pub(super) struct ObjectRequest {
    pub(super) registry: Arc<Registry>,
    pub(super) route: Arc<Route>,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) user: Identity,
    pub(super) asked: Arc<Attributes>,
    /// Its seats, if it has any.
    pub(super) admission: Option<Admission>,
    /// The connection, if it can be upgraded.
    pub(super) upgrade: Option<OnUpgrade>,
    pub(super) streams: Streams,
    pub(super) body: Body,
}

/// Handles a request. Takes it as a whole: extractors would copy its head.
pub(super) async fn serve(State(registry): State<Arc<Registry>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let info: Option<RequestInfo> = parts.extensions.remove();
    let info = info.unwrap_or_else(|| {
        let kinds = registry.cache().kinds();
        RequestInfo::of(kinds, &parts.method, &parts.uri)
    });
    let RequestInfo {
        route,
        verb,
        query,
        attributes,
    } = info;
    let errors = ErrorFormat::of(&query, &parts.headers);
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
            asked: attributes,
            admission: parts.extensions.remove(),
            upgrade: parts.extensions.remove(),
            streams,
            body,
        };
        respond(verb, request).await
    };
    let response = response.await;
    let mut response = response.unwrap_or_else(|error| ErrorResponse(error).in_format(errors));
    if let Some(deprecation) = deprecation {
        warnings::put_first(response.headers_mut(), deprecation);
    }
    response
}

/// Calls the module of the verb. Each has a boxed future of its own, since it is moved several times, and one for all
/// verbs would be as large as the largest.
fn respond(verb: Verb, request: ObjectRequest) -> BoxFuture<'static, Result<Response, ApiError>> {
    let kind = subresource_kind(request.route.kind, &request.route.subresource);
    match verb {
        Verb::Watch => Box::pin(watch::watch(request)),
        Verb::Get => in_memory(kind, read::get(request)),
        Verb::List => in_memory(kind, read::list(request)),
        Verb::Create => in_memory(kind, write::create(request)),
        Verb::Update => in_memory(kind, write::update(request)),
        Verb::Patch => in_memory(kind, write::patch(request)),
        Verb::Delete => in_memory(kind, delete::one(request)),
        Verb::DeleteCollection => in_memory(kind, delete::all(request)),
    }
}

/// Returns the future of a response whose body is in memory: an object of a kind, or a list of them.
fn in_memory(
    kind: &'static Kind,
    response: impl Future<Output = Result<ApiResponse, ApiError>> + Send + 'static,
) -> BoxFuture<'static, Result<Response, ApiError>> {
    Box::pin(response.map_ok(move |response| {
        audit::response(|| response.audited(kind));
        response.into_response()
    }))
}
