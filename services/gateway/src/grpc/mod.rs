//! The gRPC API of controllers, and server reflection. The warnings about a write are in the metadata of its response,
//! each as an entry `warning` in the form of the header of HTTP.

mod explain;
mod metadata;
mod method;
mod metrics;
mod objects;
mod request;
mod telemetry;
mod watch;

use std::slice;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use setpoint_host::serve::ConnectionInfo;
use setpoint_proto::setpoint::explain_server::ExplainServer;
use setpoint_proto::setpoint::metadata_server::MetadataServer;
use setpoint_proto::setpoint::metrics_server::MetricsServer;
use setpoint_proto::setpoint::objects_server::ObjectsServer;
use setpoint_proto::{ApiError, COMMENTED_DESCRIPTORS};
use tonic::Status;
use tonic::service::Routes;
use tower::ServiceExt as _;

use crate::registry::Registry;
use crate::request::flow_control::Matched;
use crate::request::impersonation::Actor;
use crate::request::{Attributes, audit};
use method::REFLECTION;
use objects::Service;

/// The maximum size of a request in bytes. etcd accepts 1.5 MiB; requests that exceed that a little get an error with a
/// reason.
const REQUEST_MAX: usize = 4 << 20;
/// The maximum size of a response in bytes. A list of thousands of objects is one message.
const RESPONSE_MAX: usize = 512 << 20;

/// Returns the routes of `setpoint.v1.Objects`, `setpoint.v1.Metadata`, `setpoint.v1.Explain`, `setpoint.v1.Metrics`,
/// and both versions of server reflection.
pub(crate) fn router(registry: Arc<Registry>) -> Router {
    let prepared = from_fn_with_state(registry.clone(), prepare);
    let explain = ExplainServer::new(explain::Service::new(registry.clone()));
    let metrics = MetricsServer::new(metrics::Service::new(registry.clone()));
    let metadata = MetadataServer::new(metadata::Service::new(registry.clone()))
        .max_encoding_message_size(RESPONSE_MAX);
    let objects = ObjectsServer::new(Service::new(registry))
        .max_decoding_message_size(REQUEST_MAX)
        .max_encoding_message_size(RESPONSE_MAX);
    Routes::new(objects)
        .add_service(metadata)
        .add_service(explain)
        .add_service(metrics)
        .prepare()
        .into_axum_router()
        .route(
            "/grpc.reflection.v1.ServerReflection/{method}",
            post(reflect),
        )
        .route(
            "/grpc.reflection.v1alpha.ServerReflection/{method}",
            post(reflect),
        )
        .layer(prepared)
}

/// Answers a call of server reflection, whose tables of all symbols take megabytes and are made at the first call.
async fn reflect(request: Request) -> Response {
    static SERVED: LazyLock<Router> = LazyLock::new(|| {
        let described = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(COMMENTED_DESCRIPTORS)
        };
        let built = "the build has checked the descriptors";
        Routes::new(described().build_v1().expect(built))
            .add_service(described().build_v1alpha().expect(built))
            .into_axum_router()
    });
    SERVED.clone().oneshot(request).await.into_response()
}

/// Returns the user of a call, and the one that it acts as. What it asks for is in its message.
async fn actor_of(registry: &Registry, request: &mut Request) -> Result<Actor, ApiError> {
    let connection = request.extensions().get::<ConnectionInfo>().cloned();
    let path = request.uri().path().to_owned();
    let headers = request.headers_mut();
    let user = registry
        .authenticator()
        .authenticate(connection.as_ref(), headers, &path);
    // A call has no warnings about its credentials.
    Actor::of(user.await?.user, headers)
}

/// The start of the paths of server reflection, which names no resource.
const REFLECTION_PATH: &str = "/grpc.reflection.";

/// Does what precedes every call: authenticates it, and authorizes it if it is one of reflection. What others ask for
/// is in their messages. One middleware, since each clones those within it for every call.
async fn prepare(State(registry): State<Arc<Registry>>, request: Request, next: Next) -> Response {
    let handle = |request| handle(&registry, request, next);
    audit::observe_call(registry.auditor(), request, handle).await
}

async fn handle(registry: &Registry, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let prepared = async {
        let is_reflection = path.starts_with(REFLECTION_PATH);
        if !is_reflection {
            // Until the definitions of custom kinds have been read, a custom kind would be an unknown one.
            registry.cache().loaded().await?;
        }
        let of_path = || Attributes::of_path(REFLECTION.permission, &path);
        let actor = actor_of(registry, &mut request).await;
        let actor = actor.inspect_err(|error| audit::refuse(error, of_path))?;
        if is_reflection {
            let asked = of_path();
            audit::begin(actor.user(), slice::from_ref(&asked));
            let (impersonation, authorizer) = (registry.impersonation(), registry.authorizer());
            let user = impersonation.resolve(authorizer, actor.clone(), slice::from_ref(&asked));
            authorizer.authorize(&user.await?, &asked).await?;
        }
        Ok::<_, ApiError>(actor)
    };
    match prepared.await {
        Ok(actor) => {
            let user = registry.auditor().map(|_| actor.user().clone());
            let matched = Matched::default();
            request.extensions_mut().insert(actor);
            request.extensions_mut().insert(matched.clone());
            let mut response = next.run(request).await;
            matched.set_headers(response.headers_mut());
            // What a call asks for is not known if its message cannot be read.
            let of_path = || Attributes::of_path(REFLECTION.permission, &path);
            audit::begin_late(|| user.unwrap_or_default(), of_path);
            response
        }
        Err(error) => Status::from(error).into_http(),
    }
}
