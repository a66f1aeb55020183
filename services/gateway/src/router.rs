//! The router of the gateway's port: gRPC and REST, chosen by the content type.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::Request;
use setpoint_host::Protocol;
use tower::{Service as _, service_fn};

use crate::registry::Registry;
use crate::request::flow_control::FlowControl;
use crate::settings::Settings;
use crate::{grpc, http as rest};

/// Returns the routes of the API with the default limits on concurrent requests.
pub fn router(registry: Arc<Registry>) -> Router {
    router_with(Settings::default().flow_control(), registry)
}

/// Returns the routes of the API; `host` adds those of health.
pub(crate) fn router_with(control: FlowControl, registry: Arc<Registry>) -> Router {
    let mut grpc = grpc::router(registry.clone());
    let mut rest = rest::router(registry);
    let control = Arc::new(control);
    let by_protocol = service_fn(move |mut request: Request<Body>| {
        request.extensions_mut().insert(control.clone());
        match Protocol::of(request.headers()) {
            Protocol::Grpc => grpc.call(request),
            Protocol::Http => rest.call(request),
        }
    });
    Router::new().fallback_service(by_protocol)
}
