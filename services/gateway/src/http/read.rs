//! Get and list.

use bytes::Bytes;
use setpoint_proto::ApiError;
use setpoint_proto::meta::ListMeta;

use super::reply::Reply;
use super::resources::Asked;
use super::shape::Shape;
use super::{options, selection};
use crate::heavy::heavy;

/// `GET` of one object, or of its subresource.
pub(super) async fn get(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = options::context(&asked.query, &asked.headers)?;
    let target = asked.route.target()?;
    let at = selection::freshness(&asked.query)?;
    let response = asked.registry.get(&context, &target, at).await?;
    heavy(response.raw.len(), || shape.response(response)).await
}

/// `GET` of a collection, or of a page of it.
pub(super) async fn list(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = options::context(&asked.query, &asked.headers)?;
    let params = selection::list(&asked.route, &asked.query)?;
    let list = asked.registry.list(&context, &params).await?;
    let metadata = ListMeta {
        resource_version: list.revision.to_string(),
        r#continue: list.continue_token,
        remaining_item_count: list.remaining,
        ..Default::default()
    };
    let items: Vec<Bytes> = list.items.iter().map(|item| item.raw.clone()).collect();
    let bytes = items.iter().map(Bytes::len).sum();
    heavy(bytes, || shape.list(asked.route.kind, metadata, items)).await
}
