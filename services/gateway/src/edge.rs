//! The one way in: gRPC and REST on the same port, told apart by their content type.

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

/// Everything that the gateway answers, but for its own health and metrics.
pub fn router(registry: Arc<Registry>) -> Router {
    within(Settings::default().flow_control(), registry)
}

/// The same with these numbers of requests at once.
pub(crate) fn within(control: FlowControl, registry: Arc<Registry>) -> Router {
    let grpc = grpc::router(registry.clone());
    let rest = rest::router(registry);
    let switch = service_fn(move |request: Request<Body>| {
        let mut chosen = match Protocol::of(request.headers()) {
            Protocol::Grpc => grpc.clone(),
            Protocol::Http => rest.clone(),
        };
        async move { chosen.call(request).await as Result<Response, _> }
    });
    Router::new()
        .fallback_service(switch)
        .layer(Extension(Arc::new(control)))
}
