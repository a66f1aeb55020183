//! Owners whose deletion asks that dependants be set free, or be gone, first.

use setpoint_codec::kinds;
use setpoint_proto::ApiError;
use setpoint_proto::meta::ObjectMeta;

use super::live;
use super::node::Node;
use super::task::{Action, Outcome, Position};
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};
use crate::registry::{AtLeast, Filter, Registry, RequestContext};

/// Lets an owner go, once its dependants are free or gone as its deletion asked.
pub(super) async fn end(
    registry: &Registry,
    context: &RequestContext,
    owner: &Node,
    position: Position,
) -> Result<Outcome, ApiError> {
    let now = live::now(registry, owner).await?;
    let Some(now) = now.filter(Node::is_held_for_dependants) else {
        return Ok(Outcome::Done);
    };
    let dependants = dependants_of(registry, &now).await?;
    if now.has_finalizer(ORPHAN) {
        for dependant in &dependants {
            release(registry, context, dependant, &now.uid).await?;
        }
        remove_finalizer(registry, context, &now, ORPHAN).await?;
    }
    if !now.has_finalizer(FOREGROUND) {
        return Ok(Outcome::Done);
    }
    if position.in_cycle {
        unblock_owners(registry, context, &now).await?;
    }
    if dependants.iter().any(|node| node.blocks(&now.uid)) {
        let attempts = dependants.into_iter().filter(|node| !node.ending);
        return Ok(Outcome::Then(attempts.map(Action::Attempt).collect()));
    }
    remove_finalizer(registry, context, &now, FOREGROUND).await?;
    Ok(Outcome::Done)
}

/// Returns everyone who belongs to it now. The graph would not do: whoever is overlooked here is deleted as abandoned when
/// the owner has gone.
async fn dependants_of(registry: &Registry, owner: &Node) -> Result<Vec<Node>, ApiError> {
    let namespaced = owner.kind.namespaced;
    let mut dependants = Vec::new();
    // A cluster-scoped object cannot belong to a namespaced one.
    for kind in kinds().iter().filter(|kind| kind.namespaced || !namespaced) {
        let all = Filter::all(kind, owner.key.namespace.as_str());
        let there = registry.cache().list(&all, AtLeast::Newest).await?;
        let nodes = there.items.iter().filter_map(|item| Node::of(item));
        dependants.extend(nodes.filter(|node| node.is_owned_by(&owner.uid)));
    }
    Ok(dependants)
}

async fn release(
    registry: &Registry,
    context: &RequestContext,
    dependant: &Node,
    owner: &str,
) -> Result<(), ApiError> {
    live::change(registry, context, dependant, |meta| {
        meta.owner_references
            .retain(|reference| reference.uid != owner);
    })
    .await
}

/// Owners that wait for each other in a cycle would wait for ever: this one no longer holds up those before it.
///
/// Upstream guesses that there is a cycle from a dependant that waits, before it deletes the node between; this looks
/// for the cycle itself, and so also ends one whose nodes were all deleted in the foreground by users.
async fn unblock_owners(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
) -> Result<(), ApiError> {
    live::change(registry, context, node, |meta| {
        for reference in &mut meta.owner_references {
            reference.block_owner_deletion = Some(false);
        }
    })
    .await
}

async fn remove_finalizer(
    registry: &Registry,
    context: &RequestContext,
    node: &Node,
    finalizer: &str,
) -> Result<(), ApiError> {
    live::change(registry, context, node, |meta: &mut ObjectMeta| {
        meta.finalizers.retain(|held| held != finalizer);
    })
    .await
}
