//! Kubernetes' REST API, for kubectl and other Kubernetes clients.
//!
//! Discovery and OpenAPI documents are generated from the descriptors when they are requested. All other paths have one
//! handler: it parses the path into a kind and an object, and calls the registry.

mod accept;
mod aggregation;
mod authenticate;
mod body;
mod compression;
mod connect;
mod deadline;
mod delete;
mod deprecation;
mod discovery;
mod encoder;
mod encoding;
mod flow_control;
mod forwarding;
mod handler;
mod host;
mod list_options;
mod loading;
mod metrics;
mod openapi;
mod ordered;
mod read;
mod response;
mod table;
mod telemetry;
mod version;
mod watch;
mod watch_socket;
mod write;
mod write_options;
mod yaml;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use setpoint_proto::{ApiError, Reason};

pub(crate) use connect::Streams;
pub(crate) use discovery::priorities;

use crate::registry::Registry;
use crate::request::audit;
use response::{ApiResponse, ErrorResponse};

/// Returns the routes of the REST API, and those of metrics; health is served elsewhere.
pub fn router(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/version", get(version))
        .route("/version/", get(version))
        .route("/metrics", get(setpoint_host::metrics))
        .merge(discovery::router())
        .merge(openapi::router())
        .merge(authenticate::router())
        .merge(flow_control::router())
        .merge(metrics::router(registry.adapter()))
        .method_not_allowed_fallback(async || ErrorResponse(not_allowed()))
        .fallback(handler::serve)
        .layer(from_fn_with_state(registry.clone(), prepare))
        .with_state(registry)
}

/// Does what precedes and follows the handler of every request, the outermost first. One middleware, since each clones
/// those within it for every request.
async fn prepare(
    State(registry): State<Arc<Registry>>,
    mut request: Request,
    next: Next,
) -> Response {
    let info = loading::request_info(&registry, request.method(), request.uri()).await;
    let info = match info {
        Ok(info) => info,
        Err(error) => {
            let refuse = async |_| ErrorResponse(error).into_response();
            return audit::observe(None, request, refuse).await;
        }
    };
    request.extensions_mut().insert(info.clone());
    let compress = |request| compression::compress(request, next);
    let limit = |request| deadline::limit(request, compress);
    let forward = |request| aggregation::forward(&registry, request, limit);
    let authorize = |request| authenticate::authorize(&registry, &info, request, forward);
    let admit = |request| flow_control::admit(&registry, &info, request, authorize);
    let authenticate = |request| authenticate::authenticate(&registry, &info, request, admit);
    let audit = |request| audit::observe(registry.auditor(), request, authenticate);
    telemetry::observe(&info, request, audit).await
}

async fn version() -> ApiResponse {
    // Indented for all clients, as upstream.
    ApiResponse::json(version::document(), true)
}

fn not_found() -> ApiError {
    ApiError::new(
        Reason::NotFound,
        "the server could not find the requested resource",
    )
    .with_details(Default::default())
}

fn not_allowed() -> ApiError {
    let message = "the server does not allow this method on the requested resource";
    ApiError::new(Reason::MethodNotAllowed, message).with_details(Default::default())
}
