//! The service `setpoint.v1.Metadata`: the metadata of objects of all kinds.

mod read;
mod remove;
mod watch;

use std::slice;
use std::sync::Arc;

use futures::FutureExt as _;
use setpoint_codec::kind_of;
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;
use setpoint_proto::setpoint::metadata_server::Metadata;
use setpoint_proto::setpoint::{
    CountMetadataRequest, CountMetadataResponse, GetMetadataRequest, GetMetadataResponse,
    ListMetadataRequest, ListMetadataResponse, RemoveMetadataRequest, RemoveMetadataResponse,
    WatchMetadataRequest,
};
use tonic::{Request, Response, Status};

use super::method;
use super::request::{bad_request, named, open};
use super::telemetry::Call;
use crate::registry::{Registry, Target};

/// The implementation over a registry.
pub(super) struct Service {
    registry: Arc<Registry>,
}

impl Service {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    async fn get_object(
        &self,
        request: Request<GetMetadataRequest>,
    ) -> Result<GetMetadataResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let kinds = self.registry.cache().kinds();
        let GetMetadataRequest {
            resource,
            namespace,
            name,
            ..
        } = &request;
        let target = named(kinds, resource, namespace, name, "")?;
        let call = Call::new(method::GET_METADATA, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let found = read::with_owners(&self.registry, &caller.context, &target);
        call.serve(&self.registry, &caller, found.boxed()).await
    }

    async fn list_objects(
        &self,
        request: Request<ListMetadataRequest>,
    ) -> Result<ListMetadataResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        if request.namespace.is_empty() && request.owner.is_empty() {
            return Err(bad_request("namespace: Required value"));
        }
        let target = Target::new(kind_of::<Namespace>(), "", &request.namespace, "")?;
        let content = read::list(&self.registry, &request.namespace, &request.owner);
        let call = Call::new(method::LIST_METADATA, &target);
        let call = call.within(slice::from_ref(&request.namespace));
        let caller = call.identified(&self.registry, caller).await?;
        let items = call.serve(&self.registry, &caller, content.boxed()).await?;
        Ok(ListMetadataResponse { items })
    }

    async fn count_objects(
        &self,
        request: Request<CountMetadataRequest>,
    ) -> Result<CountMetadataResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        if request.namespace.is_empty() {
            return Err(bad_request("namespace: Required value"));
        }
        let target = Target::new(kind_of::<Namespace>(), "", &request.namespace, "")?;
        let call = Call::new(method::COUNT_METADATA, &target);
        let call = call.within(slice::from_ref(&request.namespace));
        let caller = call.identified(&self.registry, caller).await?;
        let counted = read::count(&self.registry, &caller.context, &request);
        let numbers = call.serve(&self.registry, &caller, counted.boxed()).await?;
        Ok(CountMetadataResponse { numbers })
    }

    async fn remove_parts(
        &self,
        request: Request<RemoveMetadataRequest>,
    ) -> Result<RemoveMetadataResponse, ApiError> {
        let (caller, mut request) = open(request, |message| message.trace.take())?;
        let caller = caller.writing(std::mem::take(&mut request.field_manager), false);
        let kinds = self.registry.cache().kinds();
        let RemoveMetadataRequest {
            resource,
            namespace,
            name,
            ..
        } = &request;
        let target = named(kinds, resource, namespace, name, "")?;
        let call = Call::new(method::REMOVE_METADATA, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let removed = remove::remove(&self.registry, &caller.context, &target, &request);
        let revision = call.serve(&self.registry, &caller, removed.boxed()).await?;
        Ok(RemoveMetadataResponse { revision })
    }
}

#[tonic::async_trait]
impl Metadata for Service {
    type WatchStream = watch::Events;

    async fn get(
        &self,
        request: Request<GetMetadataRequest>,
    ) -> Result<Response<GetMetadataResponse>, Status> {
        Ok(Response::new(self.get_object(request).await?))
    }

    async fn list(
        &self,
        request: Request<ListMetadataRequest>,
    ) -> Result<Response<ListMetadataResponse>, Status> {
        Ok(Response::new(self.list_objects(request).await?))
    }

    async fn count(
        &self,
        request: Request<CountMetadataRequest>,
    ) -> Result<Response<CountMetadataResponse>, Status> {
        Ok(Response::new(self.count_objects(request).await?))
    }

    async fn watch(
        &self,
        request: Request<WatchMetadataRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(watch::begin(&self.registry, request).await?))
    }

    async fn remove(
        &self,
        request: Request<RemoveMetadataRequest>,
    ) -> Result<Response<RemoveMetadataResponse>, Status> {
        Ok(Response::new(self.remove_parts(request).await?))
    }
}
