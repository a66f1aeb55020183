//! Admission of a claim that grows: its class must allow it (upstream: the plugin PersistentVolumeClaimResize).

use setpoint_codec::kind_of;
use setpoint_kinds::persistentvolumeclaim::{class_of, requested};
use setpoint_kinds::{Subresource, Target};
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::PersistentVolumeClaim;
use setpoint_proto::storage::StorageClass;
use setpoint_store::cache::AtLeast;

use super::{Plugin, Step};
use crate::admission::reader::decode;
use crate::admission::{Attributes, Reader};
use crate::errors;

/// The plugin.
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    /// Checks that a claim that grows is bound, and of a class that allows volume expansion.
    fn check<'a>(&'a self, request: Attributes<'a>, reader: &'a dyn Reader) -> Option<Step<'a>> {
        if request.target.subresource != Subresource::None {
            return None;
        }
        let (new, old) = (
            request.object?.downcast_ref()?,
            request.old?.downcast_ref()?,
        );
        let grows = requested(new) > requested(old);
        grows.then(|| Box::pin(check_growth(request.target, old, new, reader)) as Step<'a>)
    }
}

async fn check_growth(
    target: &Target,
    old: &PersistentVolumeClaim,
    new: &PersistentVolumeClaim,
    reader: &dyn Reader,
) -> Result<(), ApiError> {
    let why = match () {
        () if old.status.phase != "Bound" => "Only bound persistent volume claims can be expanded",
        () if !allows_expansion(old, new, reader).await? => {
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
        }
        () => return Ok(()),
    };
    Err(errors::forbidden(target, why, None))
}

async fn allows_expansion(
    old: &PersistentVolumeClaim,
    new: &PersistentVolumeClaim,
    reader: &dyn Reader,
) -> Result<bool, ApiError> {
    let [name, former] = [new, old].map(|claim| {
        let class = claim.spec.storage_class_name.as_deref();
        class_of(&claim.metadata, class)
    });
    if name.is_empty() || name != former {
        return Ok(false);
    }
    let (kind, key) = (kind_of::<StorageClass>(), Key::new("", name));
    let Some(cached) = reader.get(kind, &key, AtLeast::Any).await? else {
        return Ok(false);
    };
    let class = decode::<StorageClass>(&cached)?;
    Ok(class.allow_volume_expansion == Some(true))
}
