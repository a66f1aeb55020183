//! The gRPC API of controllers, and server reflection.

mod explain;
mod metadata;
mod metrics;
mod objects;
mod request;
mod telemetry;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use setpoint_proto::DESCRIPTORS;
use setpoint_proto::setpoint::explain_server::ExplainServer;
use setpoint_proto::setpoint::metadata_server::MetadataServer;
use setpoint_proto::setpoint::metrics_server::MetricsServer;
use setpoint_proto::setpoint::objects_server::ObjectsServer;
use tonic::Status;
use tonic::service::Routes;

use crate::access::authentication;
use crate::registry::Registry;
use objects::Service;

/// The maximum size of a request in bytes. etcd accepts 1.5 MiB; requests that exceed that a little get an error with a reason.
const REQUEST_MAX: usize = 4 << 20;
/// The maximum size of a response in bytes. A list of thousands of objects is one message.
const RESPONSE_MAX: usize = 512 << 20;

/// Returns the routes of `setpoint.v1.Objects`, `setpoint.v1.Metadata`, `setpoint.v1.Explain`, `setpoint.v1.Metrics`, and both
/// versions of server reflection.
pub(crate) fn router(registry: Arc<Registry>) -> Router {
    let authenticated = from_fn_with_state(registry.clone(), authenticate);
    let loaded = from_fn_with_state(registry.clone(), wait_until_loaded);
    let explain = ExplainServer::new(explain::Service::new(registry.clone()));
    let metrics = MetricsServer::new(metrics::Service::new(registry.clone()));
    let metadata = MetadataServer::new(metadata::Service::new(registry.clone()))
        .max_encoding_message_size(RESPONSE_MAX);
    let objects = ObjectsServer::new(Service::new(registry))
        .max_decoding_message_size(REQUEST_MAX)
        .max_encoding_message_size(RESPONSE_MAX);
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
    };
    let built = "the build has checked the descriptors";
    Routes::new(objects)
        .add_service(metadata)
        .add_service(explain)
        .add_service(metrics)
        .add_service(described().build_v1().expect(built))
        .add_service(described().build_v1alpha().expect(built))
        .prepare()
        .into_axum_router()
        .layer((loaded, authenticated))
}

/// Waits until the definitions of custom kinds have been read; until then, a custom kind would be an unknown one.
async fn wait_until_loaded(
    State(registry): State<Arc<Registry>>,
    request: Request,
    next: Next,
) -> Response {
    if request.uri().path().starts_with("/grpc.reflection.") {
        return next.run(request).await;
    }
    match registry.cache().loaded().await {
        Ok(()) => next.run(request).await,
        Err(error) => Status::from(error).into_http(),
    }
}

/// Sets the user of a call as an extension.
async fn authenticate(
    State(registry): State<Arc<Registry>>,
    request: Request,
    next: Next,
) -> Response {
    match authentication::identify(&registry, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => Status::from(error).into_http(),
    }
}
