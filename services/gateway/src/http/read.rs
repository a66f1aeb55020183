//! Get and list.

use bytes::Bytes;
use setpoint_proto::ApiError;
use setpoint_proto::meta::ListMeta;

use super::encoder::Encoder;
use super::handler::ObjectRequest;
use super::response::ApiResponse;
use super::{list_options, write_options};
use crate::offload::offload;

/// `GET` of one object, or of its subresource.
pub(super) async fn get(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = write_options::context(&request.query, &request.headers)?.as_user(&request.user);
    let mut target = request.route.target()?;
    if !encoder.needs_content() {
        target = target.keeping_version();
    }
    let at = list_options::at_least(&request.query)?;
    let response = request.registry.get(&context, &target, at).await?;
    offload(response.raw.len(), || encoder.object(response)).await
}

/// `GET` of a collection or of a page of it.
pub(super) async fn list(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = write_options::context(&request.query, &request.headers)?.as_user(&request.user);
    let params = list_options::list(&request.route, &request.query)?;
    let list = request.registry.list(&context, &params).await?;
    let metadata = ListMeta {
        resource_version: list.revision.to_string(),
        r#continue: list.continue_token,
        remaining_item_count: list.remaining,
        ..Default::default()
    };
    let kind = request.route.kind;
    let filter = &params.filter;
    let items = match encoder.needs_content() || filter.needs_conversion() {
        true => request.registry.list_in_version(filter, list.items).await?,
        false => list.items,
    };
    let items: Vec<Bytes> = items.iter().map(|item| item.raw.clone()).collect();
    let bytes = items.iter().map(Bytes::len).sum();
    offload(bytes, || encoder.list(kind, metadata, items)).await
}
