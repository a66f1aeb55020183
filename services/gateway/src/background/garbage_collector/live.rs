//! Reads and writes of live objects, identified by uid.

use setpoint_codec::Object;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};
use setpoint_proto::{ApiError, Reason};

use super::node::Node;
use crate::registry::write::current::Current;
use crate::registry::{AtLeast, Registry, RequestContext, Target, errors};

/// Returns the current state of a node; `None` if it is gone, or its name is that of another object.
pub(super) async fn get(registry: &Registry, node: &Node) -> Result<Option<Node>, ApiError> {
    let cache = registry.cache();
    let now = cache.get(node.kind, &node.key, AtLeast::Newest).await?;
    let now = now.as_deref().and_then(Node::of);
    Ok(now.filter(|now| now.uid == node.uid))
}

/// Deletes the object of a node, if its owner references are still those of the node.
///
/// # Errors
/// `Conflict` if they differ: then the owners have to be read again.
pub(super) async fn delete_abandoned(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    policy: &str,
) -> Result<(), ApiError> {
    let options = DeleteOptions {
        propagation_policy: Some(policy.into()),
        ..Default::default()
    };
    let target = Target::whole(node.kind, &node.key);
    let condition = |meta: &ObjectMeta| match meta.uid == node.uid {
        false => Err(errors::not_found(target.kind, &target.name)),
        true if meta.owner_references == node.owners => Ok(()),
        true => Err(errors::modified(&target)),
    };
    let deleted = registry.delete_if(context, &target, &options, &condition);
    ignore_not_found(deleted.await)
}

/// Changes the metadata of the object of a node.
pub(super) async fn change(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    mut change: impl FnMut(&mut ObjectMeta) + Send,
) -> Result<(), ApiError> {
    let target = Target::whole(node.kind, &node.key).keeping_version();
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        if old.object.meta().uid != node.uid {
            return Err(errors::not_found(target.kind, &target.name));
        }
        change(slot.insert(old.object.clone_box()).meta_mut());
        Ok(())
    };
    let updated = registry.guaranteed_update(context, &target, &mut mutate);
    ignore_not_found(updated.await)
}

fn ignore_not_found<T>(result: Result<T, ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}
