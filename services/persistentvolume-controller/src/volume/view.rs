//! A view of a PersistentVolume.

use std::fmt;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::volume::Volume;
use setpoint_proto::core::{PersistentVolume, PersistentVolumeStatus};
use setpoint_proto::meta::Quantity;

/// The fields of a volume that the controllers read.
#[derive(Clone, PartialEq)]
pub struct VolumeView {
    /// The fields that decide on its binding.
    pub volume: Volume,
    /// The size, as the user wrote it.
    pub capacity: Option<Quantity>,
    /// Whether it belongs to a CSI driver.
    pub is_csi: bool,
    /// The status.
    pub status: PersistentVolumeStatus,
    tag: String,
}

/// Writes the name only, since plans are printed for users.
impl fmt::Debug for VolumeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.volume.meta.key, f)
    }
}

impl View for VolumeView {
    type Object = PersistentVolume;

    fn of(object: PersistentVolume) -> Self {
        let volume = Volume::of(&object);
        let mut capacity = object.spec.capacity;
        Self {
            tag: volume.index_key(),
            volume,
            capacity: capacity.remove("storage"),
            is_csi: object.spec.persistent_volume_source.csi.is_some(),
            status: object.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.volume.meta
    }

    /// The key of the index of [`Volume`]s.
    fn tag(&self) -> Option<&str> {
        Some(&self.tag)
    }
}

impl AsRef<Volume> for VolumeView {
    fn as_ref(&self) -> &Volume {
        &self.volume
    }
}
