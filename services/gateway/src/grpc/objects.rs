//! The service `setpoint.v1.Objects`.

use std::mem;
use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::Value;
use setpoint_codec::{Kind, KindTable};
use setpoint_fairness::ListRequest as Listed;
use setpoint_proto::setpoint::objects_server::Objects;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, ListResponse, Object, PatchRequest,
    UpdateRequest, WatchRequest, patch_request,
};
use setpoint_proto::{ApiError, Reason};
use tonic::{Request, Response, Status};

use super::method;
use super::request::{at_least, bad_request, collection, filter, named, object, open, target};
use super::telemetry::Call;
use super::watch;
use crate::offload::offload;
use crate::registry::{ObjectResponse, Registry, Subresource, Target};
use crate::request::audit;
use crate::verbs::patch::Patch;
use crate::verbs::read::{List, ListParams, RevisionMatch};
use crate::warnings;

/// The resource, the namespace, the name and the subresource that a request names.
type Named<'a> = [&'a str; 4];

/// Returns what a request names.
macro_rules! named_by {
    ($request:ident) => {
        [
            $request.resource.as_str(),
            $request.namespace.as_str(),
            $request.name.as_str(),
            $request.subresource.as_str(),
        ]
    };
}

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

    fn target(&self, of: Named<'_>) -> Result<Target, ApiError> {
        let [resource, namespace, name, subresource] = of;
        named(self.kinds(), resource, namespace, name, subresource)
    }

    async fn list_objects(&self, request: Request<ListRequest>) -> Result<ListResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let filter = filter(
            self.kinds(),
            &request.resource,
            &request.namespace,
            &request.label_selector,
            &request.field_selector,
        )?;
        let collection = collection(&filter);
        let params = ListParams {
            filter,
            limit: usize::try_from(request.limit)
                .map_err(|_| bad_request("limit: may not be negative"))?,
            continue_token: request.r#continue,
            at: RevisionMatch::NotOlderThan(at_least(&request.revision)?),
        };
        let served = params.filter.served();
        let call = Call::new(method::LIST, &collection);
        let call = call
            .selected_by(&request.field_selector, &request.label_selector)
            .reading(Listed {
                limit: params.limit as u64,
                from_store: !params.continue_token.is_empty(),
                has_selector: !params.filter.selects_all(),
                ..Listed::default()
            });
        let caller = call.identified(&self.registry, caller).await?;
        let listed = async {
            let mut list = self.registry.list(&caller.context, &params).await?;
            let registry = &self.registry;
            list.items = registry.list_in_version(&params.filter, list.items).await?;
            Ok(list)
        };
        response_of(
            call.serve(&self.registry, &caller, listed.boxed()).await?,
            served,
        )
    }

    async fn get_object(&self, request: Request<GetRequest>) -> Result<ObjectResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let target = self.target(named_by!(request))?;
        let at_least = at_least(&request.revision)?;
        let call = Call::new(method::GET, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let found = self.registry.get(&caller.context, &target, at_least);
        call.serve(&self.registry, &caller, found.boxed()).await
    }

    async fn create_object(
        &self,
        request: Request<CreateRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let [resource, namespace, name, subresource] = named_by!(request);
        let target = target(self.kinds(), resource, namespace, name, subresource)?;
        let caller = caller.writing(request.field_manager, request.dry_run);
        let call = Call::new(method::CREATE, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let given = request.object;
        let bytes = given.as_ref().map_or(0, |given| given.value.len());
        let created = async {
            let object = object(self.kinds(), given).await?;
            audit::request_object(&*object, bytes);
            self.registry.create(&caller.context, &target, object).await
        };
        call.serve(&self.registry, &caller, created.boxed()).await
    }

    async fn update_object(
        &self,
        request: Request<UpdateRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let target = self.target(named_by!(request))?;
        let caller = caller.writing(request.field_manager, request.dry_run);
        let call = Call::new(method::UPDATE, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let (registry, context) = (&self.registry, &caller.context);
        let given = request.object;
        let bytes = given.as_ref().map_or(0, |given| given.value.len());
        let updated = async {
            let object = object(self.kinds(), given).await?;
            audit::request_object(&*object, bytes);
            match target.subresource {
                Subresource::Status => registry.report_status(context, &target, object).await,
                _ => registry.update(context, &target, object).await,
            }
        };
        call.serve(&self.registry, &caller, updated.boxed()).await
    }

    async fn patch_object(
        &self,
        request: Request<PatchRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let target = self.target(named_by!(request))?;
        let caller = caller.writing(request.field_manager.clone(), request.dry_run);
        let call = Call::new(method::PATCH, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let patched = async {
            let patch = patch(&request).await?;
            self.registry.patch(&caller.context, &target, &patch).await
        };
        call.serve(&self.registry, &caller, patched.boxed()).await
    }

    async fn delete_object(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<ObjectResponse, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let DeleteRequest {
            resource,
            namespace,
            name,
            ..
        } = &request;
        let target = self.target([resource, namespace, name, ""])?;
        let caller = caller.writing(request.field_manager, false);
        let options = request.options.unwrap_or_default();
        let call = Call::new(method::DELETE, &target);
        let caller = call.identified(&self.registry, caller).await?;
        let deleted = self.registry.delete(&caller.context, &target, &options);
        let deleted = call.serve(&self.registry, &caller, deleted.boxed()).await?;
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

/// Reads the patch of a request.
async fn patch(request: &PatchRequest) -> Result<Patch, ApiError> {
    if request.r#type() == patch_request::Type::Apply && request.field_manager.is_empty() {
        let message = "fieldManager: Required value: is required for apply patch";
        return Err(ApiError::new(Reason::Invalid, message));
    }
    let parse = || serde_json::from_slice(&request.patch);
    let body: Result<Value, _> = offload(request.patch.len(), parse).await;
    let body = body.map_err(|error| bad_request(error.to_string()))?;
    audit::request(|| audit::Body::Value(body.clone(), request.patch.len()));
    Ok(Patch {
        r#type: request.r#type(),
        body,
        bytes: request.patch.len(),
        force: request.force,
        check: |_, _| Ok(Vec::new()),
    })
}

fn response(result: Result<ObjectResponse, ApiError>) -> Result<Response<Object>, Status> {
    let mut found = result.map_err(refusal)?;
    audit::response(|| Some(audit::Body::Message(found.kind, found.raw.clone())));
    let texts = mem::take(&mut found.warnings);
    let mut response = Response::new(found.into_message());
    warnings::add_to(response.metadata_mut(), &texts);
    Ok(response)
}

/// Returns the status of an error, with its warnings.
fn refusal(mut error: ApiError) -> Status {
    let texts = mem::take(&mut error.warnings);
    let mut status = Status::from(error);
    warnings::add_to(status.metadata_mut(), &texts);
    status
}

fn response_of(list: List, served: &'static Kind) -> Result<ListResponse, ApiError> {
    let items = list.items.iter().map(|item| {
        let item = ObjectResponse::from(item).served_as(served)?;
        Ok(item.into_message())
    });
    let items = items.collect::<Result<Vec<Object>, ApiError>>()?;
    audit::response(|| {
        let values = items.iter().filter_map(|item| item.object.as_ref());
        let values = values.map(|object| object.value.clone());
        Some(audit::Body::Messages(served, values.collect()))
    });
    Ok(ListResponse {
        items,
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
