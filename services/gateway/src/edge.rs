//! The one way in: gRPC and REST on the same port, told apart by their content type.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http::header::CONTENT_TYPE;
use setpoint_host::Callers;
use tower::{Service as _, service_fn};

use crate::registry::Registry;
use crate::{grpc, http as rest};

/// Everything that the gateway answers, but for its own health and metrics.
pub fn router(registry: Arc<Registry>, callers: Callers) -> Router {
    let grpc = grpc::router(registry.clone(), callers);
    let rest = rest::router(registry);
    let switch = service_fn(move |request: Request<Body>| {
        let mut chosen = if is_grpc(&request) {
            grpc.clone()
        } else {
            rest.clone()
        };
        async move { chosen.call(request).await as Result<Response, _> }
    });
    Router::new().fallback_service(switch)
}

fn is_grpc(request: &Request<Body>) -> bool {
    let content = request.headers().get(CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}
