//! Reads and writes of live members.

use setpoint_codec::Object;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};
use setpoint_proto::{ApiError, Reason};

use super::member::Member;
use crate::registry::write::current::State;
use crate::registry::{AtLeast, Call, Registry, Target, errors};

/// Returns the object as it is now; `None` if it is gone, or another has its name.
pub(super) async fn now(registry: &Registry, member: &Member) -> Result<Option<Member>, ApiError> {
    let cache = &registry.cache();
    let now = cache.get(member.kind, &member.key, AtLeast::Newest).await?;
    let now = now.as_deref().and_then(Member::of);
    Ok(now.filter(|now| now.uid == member.uid))
}

/// Deletes the object that was meant.
pub(super) async fn delete(
    registry: &Registry,
    call: &Call,
    member: &Member,
    policy: &str,
) -> Result<(), ApiError> {
    delete_if(registry, call, member, policy, &|_| true).await
}

/// Deletes the object that was meant, unless somebody has changed its owners since it was looked at.
///
/// # Errors
/// `Conflict` if so: whether it is abandoned must be found out anew.
pub(super) async fn delete_abandoned(
    registry: &Registry,
    call: &Call,
    member: &Member,
    policy: &str,
) -> Result<(), ApiError> {
    let as_seen = |meta: &ObjectMeta| meta.owner_references == member.owners;
    delete_if(registry, call, member, policy, &as_seen).await
}

async fn delete_if(
    registry: &Registry,
    call: &Call,
    member: &Member,
    policy: &str,
    condition: &(dyn Fn(&ObjectMeta) -> bool + Sync),
) -> Result<(), ApiError> {
    let options = DeleteOptions {
        propagation_policy: Some(policy.into()),
        ..Default::default()
    };
    let target = Target::whole(member.kind, &member.key);
    let meant = |meta: &ObjectMeta| match meta.uid == member.uid {
        false => Err(errors::not_found(target.kind, &target.name)),
        true if condition(meta) => Ok(()),
        true => Err(errors::modified(&target)),
    };
    let deleted = registry.delete_if(call, &target, &options, &meant).await;
    gone_is_fine(deleted.map(drop))
}

/// Changes the metadata of the object that was meant.
pub(super) async fn change(
    registry: &Registry,
    call: &Call,
    member: &Member,
    mut change: impl FnMut(&mut ObjectMeta) + Send,
) -> Result<(), ApiError> {
    let target = Target::whole(member.kind, &member.key);
    let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
        if old.object.meta().uid != member.uid {
            return Err(errors::not_found(target.kind, &target.name));
        }
        change(slot.insert(old.object.clone_box()).meta_mut());
        Ok(())
    };
    gone_is_fine(
        registry
            .amend(call, &target, None, 0, &mut propose)
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
