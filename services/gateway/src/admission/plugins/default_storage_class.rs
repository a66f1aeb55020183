//! Sets the default StorageClass of a new claim that names none (upstream: the admission plugin DefaultStorageClass).

use setpoint_codec::Object;
use setpoint_kinds::storageclass;
use setpoint_model::volume::CLASS;
use setpoint_proto::core::PersistentVolumeClaim;
use setpoint_proto::storage::StorageClass;

use super::{Plugin, Step, default_class};
use crate::admission::{Attributes, Operation, Reader};

/// The plugin.
pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let claim = object.downcast_mut::<PersistentVolumeClaim>()?;
        let class = &mut claim.spec.storage_class_name;
        if class.is_some() || claim.metadata.annotations.contains_key(CLASS) {
            return None;
        }
        Some(Box::pin(async move {
            *class = default_class::find::<StorageClass>(storageclass::DEFAULT, reader).await?;
            Ok(())
        }))
    }
}
