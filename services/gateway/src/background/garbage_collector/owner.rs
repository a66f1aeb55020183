//! Processes an owner whose deletion waits for its dependants to be orphaned or deleted.

use setpoint_proto::ApiError;
use setpoint_proto::meta::ObjectMeta;

use super::live;
use super::node::Node;
use super::task::{Action, GraphState, Outcome};
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};
use crate::registry::{AtLeast, Filter, Registry, RequestContext};

/// Orphans the dependants, or waits until they are deleted, as the finalizers ask for; then removes the finalizers.
pub(super) async fn finalize(
    registry: &Registry,
    context: &RequestContext,
    owner: &Node,
    graph: GraphState,
) -> Result<Outcome, ApiError> {
    let now = live::get(registry, owner).await?;
    let Some(now) = now.filter(Node::is_held_for_dependants) else {
        return Ok(Outcome::Done);
    };
    let dependants = dependants_of(registry, &now).await?;
    if now.has_finalizer(ORPHAN) {
        for dependant in &dependants {
            remove_reference(registry, context, dependant, &now.uid).await?;
        }
        remove_finalizer(registry, context, &now, ORPHAN).await?;
    }
    if !now.has_finalizer(FOREGROUND) {
        return Ok(Outcome::Done);
    }
    if graph.in_cycle {
        unblock_owners(registry, context, &now).await?;
    }
    if dependants.iter().any(|node| node.blocks(&now.uid)) {
        let attempts = dependants.into_iter().filter(|node| !node.ending);
        return Ok(Outcome::Then(attempts.map(Action::Attempt).collect()));
    }
    remove_finalizer(registry, context, &now, FOREGROUND).await?;
    Ok(Outcome::Done)
}

/// Returns the current dependants of an owner. The graph may lag, and a dependant that is missed here would be deleted
/// instead of orphaned once the owner is gone.
async fn dependants_of(registry: &Registry, owner: &Node) -> Result<Vec<Node>, ApiError> {
    let namespaced = owner.kind.namespaced;
    let mut dependants = Vec::new();
    // A cluster-scoped object cannot have a namespaced owner.
    for kind in registry
        .cache()
        .kinds()
        .iter()
        .filter(|kind| kind.namespaced || !namespaced)
    {
        let all = Filter::all(kind, owner.key.namespace.as_str());
        let list = registry.cache().list(&all, AtLeast::Newest).await?;
        let nodes = list.items.iter().filter_map(|item| Node::of(item));
        dependants.extend(nodes.filter(|node| node.is_owned_by(&owner.uid)));
    }
    Ok(dependants)
}

async fn remove_reference(
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

/// Breaks a cycle of owners that wait for each other: the node no longer blocks its owners.
///
/// Upstream assumes a cycle if a dependant waits too, before it deletes the node between. We search for the cycle itself,
/// which also covers one whose nodes were all deleted in the foreground by users.
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
