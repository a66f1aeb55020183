//! The router of the gateway's port: gRPC and REST, chosen by the content type.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use axum::{Extension, Router};
use http::Request;
use setpoint_host::Protocol;
use tower::{Service as _, service_fn};

use crate::flow_control::FlowControl;
use crate::registry::Registry;
use crate::settings::Settings;
use crate::{grpc, http as rest};

/// Returns the routes of the API with the default limits on concurrent requests.
pub fn router(registry: Arc<Registry>) -> Router {
    router_with(Settings::default().flow_control(), registry)
}

/// Returns the routes of the API; `host` adds those of health and metrics.
pub(crate) fn router_with(control: FlowControl, registry: Arc<Registry>) -> Router {
    let grpc = grpc::router(registry.clone());
    let rest = rest::router(registry);
    let by_protocol = service_fn(move |request: Request<Body>| {
        let mut router = match Protocol::of(request.headers()) {
            Protocol::Grpc => grpc.clone(),
            Protocol::Http => rest.clone(),
        };
        async move { router.call(request).await as Result<Response, _> }
    });
    Router::new()
        .fallback_service(by_protocol)
        .layer(Extension(Arc::new(control)))
}
