//! How controllers speak: every kind through seven verbs, reflection beside them.

mod explain;
mod objects;
mod request;
mod telemetry;
mod watch;

use std::sync::Arc;

use axum::Router;
use setpoint_proto::DESCRIPTORS;
use setpoint_proto::setpoint::explain_server::ExplainServer;
use setpoint_proto::setpoint::objects_server::ObjectsServer;
use tonic::service::Routes;

use crate::registry::Registry;
use objects::Service;

/// etcd takes 1.5 MiB. What is a little larger is read, to be refused with a reason; what is much larger is cut off.
const MESSAGE_MAX: usize = 4 << 20;
/// Lists of thousands of objects are one message.
const ANSWER_MAX: usize = 512 << 20;

/// The services `setpoint.v1.Objects` and `setpoint.v1.Explain`, and server reflection in both of its versions.
pub(crate) fn router(registry: Arc<Registry>) -> Router {
    let explain = ExplainServer::new(explain::Service::new(registry.clone()));
    let objects = ObjectsServer::new(Service::new(registry))
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(ANSWER_MAX);
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
    };
    let built = "the build has checked the descriptors";
    Routes::new(objects)
        .add_service(explain)
        .add_service(described().build_v1().expect(built))
        .add_service(described().build_v1alpha().expect(built))
        .prepare()
        .into_axum_router()
}
