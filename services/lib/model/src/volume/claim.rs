//! The fields of a claim that its binding depends on.

use setpoint_proto::core::PersistentVolumeClaim;

use super::{BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, class_of, mode, storage};
use crate::quantity::Amount;
use crate::{Meta, Selector};

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The metadata.
    pub meta: Meta,
    /// The requested size.
    pub size: Amount,
    /// The access modes that the volume must have.
    pub access_modes: Vec<String>,
    /// The name of the class; `None` if it was never set, empty for volumes without a class.
    pub class: Option<String>,
    /// The class of volume attributes; empty for none.
    pub attributes_class: String,
    /// The name of the volume; empty for none.
    pub volume: String,
    /// `Filesystem` or `Block`.
    pub mode: String,
    /// The selector of volumes; `None` without one.
    pub selector: Option<Selector>,
    /// Whether it asks for the content of another object.
    pub has_source: bool,
    /// The size of its volume, as its status says.
    pub capacity: Amount,
    /// The phase in its status.
    pub phase: String,
}

impl Claim {
    /// Parses a stored claim. A selector that is invalid, which the gateway rejects, selects nothing.
    pub fn of(claim: &PersistentVolumeClaim) -> Self {
        let (meta, spec) = (&claim.metadata, &claim.spec);
        let selector = spec.selector.as_ref().map(|selector| {
            Selector::from_label_selector(selector).unwrap_or_else(|_| Selector::nothing())
        });
        Self {
            meta: Meta::of(meta),
            size: storage(&spec.resources.requests),
            access_modes: spec.access_modes.clone(),
            class: class_of(meta, spec.storage_class_name.as_deref()),
            attributes_class: spec
                .volume_attributes_class_name
                .clone()
                .unwrap_or_default(),
            volume: spec.volume_name.clone(),
            mode: mode(spec.volume_mode.as_deref()),
            selector,
            has_source: spec.data_source.is_some() || spec.data_source_ref.is_some(),
            capacity: storage(&claim.status.capacity),
            phase: claim.status.phase.clone(),
        }
    }

    /// Returns the name of the class; empty for none.
    pub fn class(&self) -> &str {
        self.class.as_deref().unwrap_or_default()
    }

    /// Returns whether the controller has completed the binding.
    pub fn is_bound(&self) -> bool {
        self.meta.annotation(BIND_COMPLETED).is_some()
    }

    /// Returns whether the controller has set the name of the volume.
    pub fn is_bound_by_controller(&self) -> bool {
        self.meta.annotation(BOUND_BY_CONTROLLER).is_some()
    }

    /// Returns the node for which the volume is provisioned.
    pub fn selected_node(&self) -> Option<&str> {
        self.meta
            .annotation(SELECTED_NODE)
            .filter(|node| !node.is_empty())
    }

    /// Returns whether the claim has this access mode.
    pub fn has_access_mode(&self, mode: &str) -> bool {
        self.access_modes.iter().any(|own| own == mode)
    }
}
