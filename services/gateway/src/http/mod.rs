//! REST as stock kubectl and other Kubernetes clients speak it.
//!
//! Discovery and OpenAPI are made from the descriptors, once. Everything else is one handler that reads from the
//! path which kind is meant and leaves the rest to the registry.

mod accept;
mod admit;
mod body;
mod delete;
mod discovery;
mod log;
mod openapi;
mod options;
mod query;
mod read;
mod reply;
mod resources;
mod route;
mod selection;
mod shape;
mod table;
mod telemetry;
mod timeout;
mod version;
mod watch;
mod write;
mod yaml;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use http::HeaderMap;
use setpoint_proto::{ApiError, Reason};

use crate::registry::Registry;
use query::Query;
use reply::{Failure, Reply};

/// Everything that is served over HTTP, but for health and metrics.
pub fn router(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/version", get(version))
        .route("/version/", get(version))
        .merge(discovery::router())
        .merge(openapi::router())
        .method_not_allowed_fallback(async || Failure(not_allowed()))
        .fallback(resources::serve)
        .layer(from_fn(admit::admit))
        .layer(from_fn(telemetry::observe))
        .with_state(registry)
}

async fn version(query: Query, headers: HeaderMap) -> Reply {
    reply::document(&version::document(), reply::is_pretty(&query, &headers))
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
