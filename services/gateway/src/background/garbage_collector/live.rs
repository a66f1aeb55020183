//! Reads and writes of live nodes.

use setpoint_codec::Object;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};
use setpoint_proto::{ApiError, Reason};

use super::node::Node;
use crate::registry::write::current::Current;
use crate::registry::{AtLeast, Registry, RequestContext, Target, errors};

/// Returns the object as it is now; `None` if it is gone, or another has its name.
pub(super) async fn now(registry: &Registry, node: &Node) -> Result<Option<Node>, ApiError> {
    let cache = &registry.cache();
    let now = cache.get(node.kind, &node.key, AtLeast::Newest).await?;
    let now = now.as_deref().and_then(Node::of);
    Ok(now.filter(|now| now.uid == node.uid))
}

/// Deletes the object that was meant.
pub(super) async fn delete(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    policy: &str,
) -> Result<(), ApiError> {
    delete_if(registry, context, node, policy, &|_| true).await
}

/// Deletes the object that was meant, unless somebody has changed its owners since it was looked at.
///
/// # Errors
/// `Conflict` if so: whether it is abandoned must be found out anew.
pub(super) async fn delete_abandoned(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    policy: &str,
) -> Result<(), ApiError> {
    let as_seen = |meta: &ObjectMeta| meta.owner_references == node.owners;
    delete_if(registry, context, node, policy, &as_seen).await
}

async fn delete_if(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    policy: &str,
    condition: &(dyn Fn(&ObjectMeta) -> bool + Sync),
) -> Result<(), ApiError> {
    let options = DeleteOptions {
        propagation_policy: Some(policy.into()),
        ..Default::default()
    };
    let target = Target::whole(node.kind, &node.key);
    let meant = |meta: &ObjectMeta| match meta.uid == node.uid {
        false => Err(errors::not_found(target.kind, &target.name)),
        true if condition(meta) => Ok(()),
        true => Err(errors::modified(&target)),
    };
    let deleted = registry.delete_if(context, &target, &options, &meant).await;
    gone_is_fine(deleted.map(drop))
}

/// Changes the metadata of the object that was meant.
pub(super) async fn change(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    mut change: impl FnMut(&mut ObjectMeta) + Send,
) -> Result<(), ApiError> {
    let target = Target::whole(node.kind, &node.key);
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        if old.object.meta().uid != node.uid {
            return Err(errors::not_found(target.kind, &target.name));
        }
        change(slot.insert(old.object.clone_box()).meta_mut());
        Ok(())
    };
    gone_is_fine(
        registry
            .guaranteed_update(context, &target, None, 0, &mut mutate)
            .await
            .map(drop),
    )
}

fn gone_is_fine(result: Result<(), ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}
