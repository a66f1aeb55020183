//! The service `setpoint.v1.Objects`.

use std::sync::Arc;

use futures::FutureExt as _;
use setpoint_codec::{Kind, KindTable};
use setpoint_model::Verb;
use setpoint_proto::setpoint::objects_server::Objects;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, ListResponse, Object, PatchRequest,
    UpdateRequest, WatchRequest, patch_request,
};
use setpoint_proto::{ApiError, Reason};
use tonic::{Request, Response, Status};

use super::request::{at_least, bad_request, collection, context, filter, named, object, target};
use super::telemetry::Call;
use super::watch;
use crate::heavy::heavy;
use crate::registry::{ObjectResponse, Registry, Subresource};
use crate::verbs::patch::Patch;
use crate::verbs::read::{List, ListParams, RevisionMatch};

/// The implementation over a registry.
pub(super) struct Service {
    registry: Arc<Registry>,
}

impl Service {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    fn kinds(&self) -> &KindTable {
        self.registry.cache().kinds()
    }

    async fn list_objects(&self, request: Request<ListRequest>) -> Result<ListResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let context = context(&metadata, &extensions, request.trace)?;
        let filter = filter(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.label_selector,
            &request.field_selector,
        )?;
        let collection = collection(&filter);
        let call = Call::new(Verb::List, &collection);
        let params = ListParams {
            filter,
            limit: usize::try_from(request.limit)
                .map_err(|_| bad_request("limit: may not be negative"))?,
            continue_token: request.r#continue,
            at: RevisionMatch::NotOlderThan(at_least(&request.revision)?),
        };
        let list = self.registry.list(&context, &params);
        let served = params.filter.served();
        let converted = async {
            let mut list = list.await?;
            let registry = &self.registry;
            list.items = registry.list_in_version(&params.filter, list.items).await?;
            Ok(list)
        };
        let list = call
            .observe(&extensions, &context, converted.boxed())
            .await?;
        listed(list, served)
    }

    async fn get_object(&self, request: Request<GetRequest>) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let context = context(&metadata, &extensions, request.trace)?;
        let target = named(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.name,
            &request.subresource,
        )?;
        let found = self
            .registry
            .get(&context, &target, at_least(&request.revision)?);
        Call::new(Verb::Get, &target)
            .observe(&extensions, &context, found.boxed())
            .await
    }

    async fn create_object(
        &self,
        request: Request<CreateRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let target = target(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.name,
            &request.subresource,
        )?;
        let context = context(&metadata, &extensions, request.trace)?
            .by(request.field_manager)
            .dry(request.dry_run);
        let created = self.registry.create(
            &context,
            &target,
            object(self.kinds(), request.object).await?,
        );
        Call::new(Verb::Create, &target)
            .dry(request.dry_run)
            .observe(&extensions, &context, created.boxed())
            .await
    }

    async fn update_object(
        &self,
        request: Request<UpdateRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let target = named(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.name,
            &request.subresource,
        )?;
        let context = context(&metadata, &extensions, request.trace)?
            .by(request.field_manager)
            .dry(request.dry_run);
        let object = object(self.kinds(), request.object).await?;
        let updated = async {
            match target.subresource {
                Subresource::Status => self.registry.report_status(&context, &target, object).await,
                _ => self.registry.update(&context, &target, object).await,
            }
        };
        Call::new(Verb::Update, &target)
            .dry(request.dry_run)
            .observe(&extensions, &context, updated.boxed())
            .await
    }

    async fn patch_object(
        &self,
        request: Request<PatchRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let target = named(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.name,
            &request.subresource,
        )?;
        if request.r#type() == patch_request::Type::Apply && request.field_manager.is_empty() {
            let message = "fieldManager: Required value: is required for apply patch";
            return Err(ApiError::new(Reason::Invalid, message));
        }
        let parse = || serde_json::from_slice(&request.patch);
        let body = heavy(request.patch.len(), parse).await;
        let patch = Patch {
            r#type: request.r#type(),
            body: body.map_err(|error| bad_request(error.to_string()))?,
            bytes: request.patch.len(),
            force: request.force,
            check: |_, _| Ok(Vec::new()),
        };
        let context = context(&metadata, &extensions, request.trace)?
            .by(request.field_manager)
            .dry(request.dry_run);
        let patched = self.registry.patch(&context, &target, &patch);
        Call::new(Verb::Patch, &target)
            .dry(request.dry_run)
            .observe(&extensions, &context, patched.boxed())
            .await
    }

    async fn delete_object(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, request) = request.into_parts();
        let context = context(&metadata, &extensions, request.trace)?.by(request.field_manager);
        let target = named(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.name,
            "",
        )?;
        let options = request.options.unwrap_or_default();
        let deleted = self.registry.delete(&context, &target, &options);
        let deleted = Call::new(Verb::Delete, &target)
            .observe(&extensions, &context, deleted.boxed())
            .await?;
        let registry = &self.registry;
        let stored = deleted.response.encoded();
        // The deletion has begun, whether or not the object can be converted.
        match registry
            .response_in_version(deleted.response, target.served)
            .await
        {
            Ok(response) => Ok(response),
            Err(_) => Ok(stored),
        }
    }
}

fn response(result: Result<ObjectResponse, ApiError>) -> Result<Response<Object>, Status> {
    Ok(Response::new(result?.into_message()))
}

fn listed(list: List, served: &'static Kind) -> Result<ListResponse, ApiError> {
    let items = list.items.iter().map(|item| {
        let item = ObjectResponse::from(item).served_as(served)?;
        Ok(item.into_message())
    });
    Ok(ListResponse {
        items: items.collect::<Result<_, ApiError>>()?,
        revision: list.revision.to_string(),
        r#continue: list.continue_token,
        remaining: list.remaining,
    })
}

#[tonic::async_trait]
impl Objects for Service {
    type WatchStream = watch::Events;

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<Object>, Status> {
        response(self.get_object(request).await)
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        Ok(Response::new(self.list_objects(request).await?))
    }

    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<Object>, Status> {
        response(self.create_object(request).await)
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Result<Response<Object>, Status> {
        response(self.update_object(request).await)
    }

    async fn patch(&self, request: Request<PatchRequest>) -> Result<Response<Object>, Status> {
        response(self.patch_object(request).await)
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<Object>, Status> {
        response(self.delete_object(request).await)
    }

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(watch::begin(&self.registry, request).await?))
    }
}
