//! The method `Remove`: a write of metadata that keeps the version in which an object is stored.

use setpoint_codec::Object;
use setpoint_proto::ApiError;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::setpoint::RemoveMetadataRequest;

use crate::registry::{Registry, RequestContext, Target, errors};
use crate::write::current::Current;

/// Removes parts of the metadata of an object. Returns the revision of the write.
///
/// # Errors
/// `NotFound` if there is no object of that name and uid.
pub(super) async fn remove(
    registry: &Registry,
    context: &RequestContext,
    target: &Target,
    request: &RemoveMetadataRequest,
) -> Result<String, ApiError> {
    let target = target.clone().keeping_version();
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        if old.object.meta().uid != request.uid {
            return Err(errors::not_found(target.served, &target.name));
        }
        apply(request, slot.insert(old.object.clone_box()).meta_mut());
        Ok(())
    };
    let updated = registry.guaranteed_update(context, &target, &mut mutate);
    Ok(updated.await?.into_response().into_message().revision)
}

fn apply(request: &RemoveMetadataRequest, meta: &mut ObjectMeta) {
    let owners = &mut meta.owner_references;
    owners.retain(|reference| !request.owners.contains(&reference.uid));
    if request.unblock_owners {
        let unblock = |reference: &mut OwnerReference| {
            reference.block_owner_deletion = Some(false);
        };
        owners.iter_mut().for_each(unblock);
    }
    meta.finalizers
        .retain(|held| !request.finalizers.contains(held));
}
