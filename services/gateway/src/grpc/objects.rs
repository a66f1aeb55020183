//! The service `setpoint.v1.Objects`: each verb read, done and answered.

use std::sync::Arc;

use setpoint_model::Verb;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::objects_server::Objects;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, ListResponse, Object, PatchRequest,
    UpdateRequest, WatchRequest,
};
use tonic::{Request, Response, Status};

use super::request::{at_least, bad, context, filter, named, object, target};
use super::telemetry::About;
use super::watch;
use crate::heavy::heavy;
use crate::registry::{At, List, ListParams, ObjectResponse, Patch, Registry, Subresource};

/// The service over a registry.
pub(super) struct Service {
    registry: Arc<Registry>,
}

impl Service {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    async fn list_objects(&self, request: Request<ListRequest>) -> Result<List, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let context = context(&metadata, asked.trace)?;
        let filter = filter(
            &asked.resource,
            &asked.namespace,
            &asked.label_selector,
            &asked.field_selector,
        )?;
        let about = About {
            verb: Verb::List,
            kind: filter.kind(),
            subresource: "",
            namespace: &asked.namespace,
            name: "",
            dry_run: false,
        };
        let params = ListParams {
            filter,
            limit: usize::try_from(asked.limit).map_err(|_| bad("limit: may not be negative"))?,
            continue_token: asked.r#continue,
            at: At::Least(at_least(&asked.revision)?),
        };
        about
            .observe(&extensions, &context, self.registry.list(&context, &params))
            .await
    }

    async fn get_object(&self, request: Request<GetRequest>) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let context = context(&metadata, asked.trace)?;
        let target = named(
            &asked.resource,
            &asked.namespace,
            &asked.name,
            &asked.subresource,
        )?;
        let found = self
            .registry
            .get(&context, &target, at_least(&asked.revision)?);
        About::target(Verb::Get, &target)
            .observe(&extensions, &context, found)
            .await
    }

    async fn create_object(
        &self,
        request: Request<CreateRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let target = target(
            &asked.resource,
            &asked.namespace,
            &asked.name,
            &asked.subresource,
        )?;
        let context = context(&metadata, asked.trace)?
            .by(asked.field_manager)
            .dry(asked.dry_run);
        let created = self
            .registry
            .create(&context, &target, object(asked.object).await?);
        About::target(Verb::Create, &target)
            .dry(asked.dry_run)
            .observe(&extensions, &context, created)
            .await
    }

    async fn update_object(
        &self,
        request: Request<UpdateRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let target = named(
            &asked.resource,
            &asked.namespace,
            &asked.name,
            &asked.subresource,
        )?;
        let context = context(&metadata, asked.trace)?
            .by(asked.field_manager)
            .dry(asked.dry_run);
        let object = object(asked.object).await?;
        let updated = async {
            match target.subresource {
                Subresource::Status => self.registry.report_status(&context, &target, object).await,
                _ => self.registry.update(&context, &target, object).await,
            }
        };
        About::target(Verb::Update, &target)
            .dry(asked.dry_run)
            .observe(&extensions, &context, updated)
            .await
    }

    async fn patch_object(
        &self,
        request: Request<PatchRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let target = named(
            &asked.resource,
            &asked.namespace,
            &asked.name,
            &asked.subresource,
        )?;
        let parse = || serde_json::from_slice(&asked.patch);
        let body = heavy(asked.patch.len(), parse).await;
        let patch = Patch {
            r#type: asked.r#type(),
            body: body.map_err(|error| bad(error.to_string()))?,
            bytes: asked.patch.len(),
            check: |_, _| Ok(Vec::new()),
        };
        let context = context(&metadata, asked.trace)?
            .by(asked.field_manager)
            .dry(asked.dry_run);
        let patched = self.registry.patch(&context, &target, &patch);
        About::target(Verb::Patch, &target)
            .dry(asked.dry_run)
            .observe(&extensions, &context, patched)
            .await
    }

    async fn delete_object(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let context = context(&metadata, asked.trace)?.by(asked.field_manager);
        let target = named(&asked.resource, &asked.namespace, &asked.name, "")?;
        let options = asked.options.unwrap_or_default();
        let deleted = self.registry.delete(&context, &target, &options);
        let deleted = About::target(Verb::Delete, &target)
            .observe(&extensions, &context, deleted)
            .await?;
        Ok(deleted.response)
    }
}

fn answered(response: Result<ObjectResponse, ApiError>) -> Result<Response<Object>, Status> {
    Ok(Response::new(response?.into_message()))
}

fn listed(list: List) -> ListResponse {
    let items = list
        .items
        .iter()
        .map(|item| ObjectResponse::from(item).into_message());
    ListResponse {
        items: items.collect(),
        revision: list.revision.to_string(),
        r#continue: list.continue_token,
        remaining: list.remaining,
    }
}

#[tonic::async_trait]
impl Objects for Service {
    type WatchStream = watch::Events;

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<Object>, Status> {
        answered(self.get_object(request).await)
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        Ok(Response::new(listed(self.list_objects(request).await?)))
    }

    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<Object>, Status> {
        answered(self.create_object(request).await)
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Result<Response<Object>, Status> {
        answered(self.update_object(request).await)
    }

    async fn patch(&self, request: Request<PatchRequest>) -> Result<Response<Object>, Status> {
        answered(self.patch_object(request).await)
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<Object>, Status> {
        answered(self.delete_object(request).await)
    }

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(watch::begin(&self.registry, request).await?))
    }
}
