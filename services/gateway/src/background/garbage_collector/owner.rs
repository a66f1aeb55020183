//! Owners whose deletion asks that dependants be set free, or be gone, first.

use setpoint_codec::kinds;
use setpoint_proto::ApiError;
use setpoint_proto::meta::ObjectMeta;

use super::chore::{Outcome, Standing, Task};
use super::live;
use super::member::Member;
use crate::registry::validation::metadata::{FOREGROUND, ORPHAN};
use crate::registry::{AtLeast, Call, Filter, Registry};

/// Lets an owner go, once its dependants are free or gone as its deletion asked.
pub(super) async fn end(
    registry: &Registry,
    call: &Call,
    owner: &Member,
    standing: Standing,
) -> Result<Outcome, ApiError> {
    let now = live::now(registry, owner).await?;
    let Some(now) = now.filter(Member::is_held_for_dependants) else {
        return Ok(Outcome::Done);
    };
    let dependants = dependants_of(registry, &now).await?;
    if now.has_finalizer(ORPHAN) {
        for dependant in &dependants {
            release(registry, call, dependant, &now.uid).await?;
        }
        remove_finalizer(registry, call, &now, ORPHAN).await?;
    }
    if !now.has_finalizer(FOREGROUND) {
        return Ok(Outcome::Done);
    }
    if standing.in_circle {
        unblock_owners(registry, call, &now).await?;
    }
    if dependants.iter().any(|member| member.blocks(&now.uid)) {
        let attempts = dependants.into_iter().filter(|member| !member.ending);
        return Ok(Outcome::Then(attempts.map(Task::Attempt).collect()));
    }
    remove_finalizer(registry, call, &now, FOREGROUND).await?;
    Ok(Outcome::Done)
}

/// Returns everyone who belongs to it now. The graph would not do: whoever is overlooked here is deleted as abandoned when
/// the owner has gone.
async fn dependants_of(registry: &Registry, owner: &Member) -> Result<Vec<Member>, ApiError> {
    let namespaced = owner.kind.namespaced;
    let mut dependants = Vec::new();
    // A cluster-scoped object cannot belong to a namespaced one.
    for kind in kinds().iter().filter(|kind| kind.namespaced || !namespaced) {
        let all = Filter::all(kind, owner.key.namespace.as_str());
        let there = registry.cache().list(&all, AtLeast::Newest).await?;
        let members = there.items.iter().filter_map(|item| Member::of(item));
        dependants.extend(members.filter(|member| member.belongs_to(&owner.uid)));
    }
    Ok(dependants)
}

async fn release(
    registry: &Registry,
    call: &Call,
    dependant: &Member,
    owner: &str,
) -> Result<(), ApiError> {
    live::change(registry, call, dependant, |meta| {
        meta.owner_references
            .retain(|reference| reference.uid != owner);
    })
    .await
}

/// Owners that wait for each other in a circle would wait for ever: this one no longer holds up those before it.
///
/// Upstream guesses that there is a circle from a dependant that waits, before it deletes the member between; this looks
/// for the circle itself, and so also ends one whose members were all deleted in the foreground by users.
async fn unblock_owners(registry: &Registry, call: &Call, member: &Member) -> Result<(), ApiError> {
    live::change(registry, call, member, |meta| {
        for reference in &mut meta.owner_references {
            reference.block_owner_deletion = Some(false);
        }
    })
    .await
}

async fn remove_finalizer(
    registry: &Registry,
    call: &Call,
    member: &Member,
    finalizer: &str,
) -> Result<(), ApiError> {
    live::change(registry, call, member, |meta: &mut ObjectMeta| {
        meta.finalizers.retain(|held| held != finalizer);
    })
    .await
}
