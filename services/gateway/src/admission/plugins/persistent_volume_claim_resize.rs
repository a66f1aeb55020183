//! Admission of a claim that grows: its class must allow it (upstream: the plugin PersistentVolumeClaimResize).

use prost::Message as _;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::PersistentVolumeClaim;
use setpoint_proto::storage::StorageClass;

use crate::kinds::Admitting;
use crate::kinds::persistentvolumeclaim::{class_of, requested};
use crate::registry::{AtLeast, Registry, Subresource, Target, errors};

/// Checks that a claim that grows is bound, and of a class that allows volume expansion. `None` for other writes.
///
/// # Errors
/// `Forbidden` if it is not.
pub(crate) fn check<'a>(
    target: &'a Target,
    old: &'a dyn Object,
    new: &'a dyn Object,
    registry: &'a Registry,
) -> Option<Admitting<'a>> {
    if target.subresource != Subresource::None {
        return None;
    }
    let (old, new) = (old.downcast_ref()?, new.downcast_ref()?);
    let grows = requested(new) > requested(old);
    grows.then(|| Box::pin(check_growth(target, old, new, registry)) as Admitting<'a>)
}

async fn check_growth(
    target: &Target,
    old: &PersistentVolumeClaim,
    new: &PersistentVolumeClaim,
    registry: &Registry,
) -> Result<(), ApiError> {
    let why = match () {
        () if old.status.phase != "Bound" => "Only bound persistent volume claims can be expanded",
        () if !allows_expansion(old, new, registry).await? => {
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
        }
        () => return Ok(()),
    };
    Err(errors::forbidden(target, why, None))
}

async fn allows_expansion(
    old: &PersistentVolumeClaim,
    new: &PersistentVolumeClaim,
    registry: &Registry,
) -> Result<bool, ApiError> {
    let [name, former] = [new, old].map(|claim| {
        let class = claim.spec.storage_class_name.as_deref();
        class_of(&claim.metadata, class)
    });
    if name.is_empty() || name != former {
        return Ok(false);
    }
    let (kind, key) = (kind_of::<StorageClass>(), Key::new("", name));
    let Some(cached) = registry.cache().get(kind, &key, AtLeast::Any).await? else {
        return Ok(false);
    };
    let class = errors::readable(StorageClass::decode(cached.raw.as_ref()))?;
    Ok(class.allow_volume_expansion == Some(true))
}
