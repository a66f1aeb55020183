//! The fields of a volume that its binding depends on.

use setpoint_proto::core::{NodeSelectorTerm, ObjectReference, PersistentVolume};

use super::{
    BOUND_BY_CONTROLLER, Claim, PROVISIONED_BY, VOLUME_PROTECTION, class_of, mode, storage,
};
use crate::quantity::Amount;
use crate::{Key, Meta};

/// A PersistentVolume.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// The metadata.
    pub meta: Meta,
    /// All finalizers.
    pub finalizers: Vec<String>,
    /// The size.
    pub capacity: Amount,
    /// The access modes that it supports.
    pub access_modes: Vec<String>,
    /// The name of the class; empty for none.
    pub class: String,
    /// The class of volume attributes; empty for none.
    pub attributes_class: String,
    /// `Filesystem` or `Block`.
    pub mode: String,
    /// The claim that it is reserved for.
    pub claim: Option<ClaimRef>,
    /// The terms of the nodes that it can be used on; `None` for all nodes.
    pub nodes: Option<Vec<NodeSelectorTerm>>,
    /// The policy for when its claim is gone: `Retain`, `Delete` or `Recycle`.
    pub reclaim_policy: String,
    /// The phase in its status.
    pub phase: String,
}

/// Returns the [`Volume::index_key`] of the volumes that are reserved for a claim. No class has a name with a slash.
pub fn reserved_for(claim: &Key) -> String {
    format!("{}/{}", claim.namespace, claim.name)
}

/// A reference to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// Namespace and name.
    pub key: Key,
    /// The uid; empty if a user has reserved the volume for a claim of this name.
    pub uid: String,
}

impl ClaimRef {
    fn of(reference: &ObjectReference) -> Self {
        Self {
            key: Key::new(&reference.namespace, &reference.name),
            uid: reference.uid.clone(),
        }
    }
}

impl Volume {
    /// Parses a stored volume.
    pub fn of(volume: &PersistentVolume) -> Self {
        let (meta, spec) = (&volume.metadata, &volume.spec);
        let affinity = spec.node_affinity.as_ref();
        let required = affinity.and_then(|affinity| affinity.required.as_ref());
        Self {
            meta: Meta::of(meta),
            finalizers: meta.finalizers.clone(),
            capacity: storage(&spec.capacity),
            access_modes: spec.access_modes.clone(),
            class: class_of(meta, Some(&spec.storage_class_name)).unwrap_or_default(),
            attributes_class: spec
                .volume_attributes_class_name
                .clone()
                .unwrap_or_default(),
            mode: mode(spec.volume_mode.as_deref()),
            claim: spec.claim_ref.as_ref().map(ClaimRef::of),
            nodes: required.map(|required| required.node_selector_terms.clone()),
            reclaim_policy: spec.persistent_volume_reclaim_policy.clone(),
            phase: volume.status.phase.clone(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.meta.key.name
    }

    /// Returns the key of an index in which a claim finds the volumes that it may be bound to: that of [`reserved_for`]
    /// if it is reserved, or else its class.
    pub fn index_key(&self) -> String {
        match &self.claim {
            Some(claim) => reserved_for(&claim.key),
            None => self.class.clone(),
        }
    }

    /// Returns whether it is reserved for the claim, by its uid or, as users do, by its name alone.
    pub fn is_reserved_for(&self, claim: &Claim) -> bool {
        let meta = &claim.meta;
        let reserved =
            |of: &ClaimRef| of.key == meta.key && (of.uid.is_empty() || of.uid == meta.uid);
        self.claim.as_ref().is_some_and(reserved)
    }

    /// Returns whether it names the claim by its uid.
    pub fn is_bound_to(&self, claim: &Claim) -> bool {
        let named = |of: &ClaimRef| of.key == claim.meta.key && of.uid == claim.meta.uid;
        self.claim.as_ref().is_some_and(named)
    }

    /// Returns whether the controller has set the reference to the claim.
    pub fn is_bound_by_controller(&self) -> bool {
        self.meta.annotation(BOUND_BY_CONTROLLER).is_some()
    }

    /// Returns the provisioner that has created it.
    pub fn provisioner(&self) -> Option<&str> {
        self.meta.annotation(PROVISIONED_BY)
    }

    /// Returns whether it has a finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|own| own == finalizer)
    }

    /// Returns whether it cannot vanish while it is bound.
    pub fn is_protected(&self) -> bool {
        self.has_finalizer(VOLUME_PROTECTION)
    }
}

impl AsRef<Self> for Volume {
    fn as_ref(&self) -> &Self {
        self
    }
}
