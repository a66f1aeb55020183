//! The service `setpoint.v1.Metadata`: the metadata of objects of all kinds.

use std::sync::Arc;

use futures::FutureExt as _;
use prost::Message as _;
use setpoint_codec::{Kind, kind_of};
use setpoint_model::Verb;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::{ObjectMeta, PartialObjectMetadata};
use setpoint_proto::setpoint::metadata_server::Metadata;
use setpoint_proto::setpoint::{ListMetadataRequest, ListMetadataResponse, ObjectMetadata};
use setpoint_proto::{ApiError, Reason};
use tonic::{Request, Response, Status};

use super::request::{bad_request, context};
use super::telemetry::Call;
use crate::access;
use crate::registry::{AtLeast, Cached, Filter, Registry, RequestContext, Target, readable};

/// The implementation over a registry.
pub(super) struct Service {
    registry: Arc<Registry>,
}

impl Service {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    async fn list_objects(
        &self,
        request: Request<ListMetadataRequest>,
    ) -> Result<ListMetadataResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let context = context(&metadata, &extensions, request.trace)?;
        if request.namespace.is_empty() {
            return Err(bad_request("namespace: Required value"));
        }
        let target = Target::new(kind_of::<Namespace>(), "", &request.namespace, "")?;
        let content = content(&self.registry, &context, &request.namespace);
        let items = Call::new(Verb::List, &target)
            .observe(&extensions, &context, content.boxed())
            .await?;
        Ok(ListMetadataResponse { items })
    }
}

/// Returns the metadata of all objects in a namespace.
async fn content(
    registry: &Registry,
    context: &RequestContext,
    namespace: &str,
) -> Result<Vec<ObjectMetadata>, ApiError> {
    let mut items = Vec::new();
    // The cache is as new as the call from the first list on.
    let mut at = AtLeast::Newest;
    let kinds = registry.cache().kinds().iter();
    for kind in kinds.filter(|kind| kind.namespaced && kind.is_stored()) {
        access::allow(&context.user, Verb::List, kind, namespace)?;
        let all = Filter::all(kind, namespace);
        match registry.cache().list(&all, at).await {
            Ok(found) => {
                let found = found.items.iter().map(|object| metadata_of(kind, object));
                items.extend(found.collect::<Result<Vec<_>, _>>()?);
                at = AtLeast::Any;
            }
            // Its definition has been deleted in the meantime, after its last object.
            Err(error) if error.reason == Reason::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(items)
}

fn metadata_of(kind: &Kind, object: &Cached) -> Result<ObjectMetadata, ApiError> {
    let partial = readable(PartialObjectMetadata::decode(object.raw.as_ref()))?;
    let meta = partial.metadata;
    Ok(ObjectMetadata {
        resource: kind.resource(),
        metadata: ObjectMeta {
            namespace: meta.namespace,
            name: meta.name,
            uid: meta.uid,
            resource_version: object.revision.to_string(),
            creation_timestamp: meta.creation_timestamp,
            deletion_timestamp: meta.deletion_timestamp,
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
            owner_references: meta.owner_references,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
    })
}

#[tonic::async_trait]
impl Metadata for Service {
    async fn list(
        &self,
        request: Request<ListMetadataRequest>,
    ) -> Result<Response<ListMetadataResponse>, Status> {
        Ok(Response::new(self.list_objects(request).await?))
    }
}
