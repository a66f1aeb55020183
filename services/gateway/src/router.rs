//! The router of the gateway's port: gRPC and REST, chosen by the content type.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::Request;
use setpoint_host::Protocol;
use tower::{Service as _, service_fn};

use crate::registry::Registry;
use crate::{grpc, http as rest};

/// Returns the routes of the API; `host` adds those of health.
pub fn router(registry: Arc<Registry>) -> Router {
    let mut grpc = grpc::router(registry.clone());
    let mut rest = rest::router(registry);
    let by_protocol =
        service_fn(
            move |request: Request<Body>| match Protocol::of(request.headers()) {
                Protocol::Grpc => grpc.call(request),
                Protocol::Http => rest.call(request),
            },
        );
    Router::new().fallback_service(by_protocol)
}
