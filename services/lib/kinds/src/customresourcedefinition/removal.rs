//! The deletion of a definition, which the objects of its kind precede.

use jiff::Timestamp;
use setpoint_model::condition::{FALSE, TRUE, get, is_true};
use setpoint_proto::apiextensions::CustomResourceDefinition;

use super::condition::{ESTABLISHED, TERMINATING, new, set};

/// Holds a deletion until the objects of the kind are deleted.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The reason of the condition after a failure.
const FAILED: &str = "InstanceDeletionFailed";

/// A step of the deletion, for the condition `Terminating`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The deletion was requested.
    Pending,
    /// Objects are being deleted.
    InProgress,
    /// An object could not be deleted.
    Failed(String),
    /// All objects are deleted.
    Completed,
    /// There were never any objects.
    NeverEstablished,
}

impl Removal {
    /// Returns the first step after the request.
    pub fn of(definition: &CustomResourceDefinition) -> Self {
        match is_true(&definition.status.conditions, ESTABLISHED) {
            true => Self::InProgress,
            false => Self::NeverEstablished,
        }
    }

    /// Returns status, reason and message of the condition.
    fn condition(self) -> (&'static str, &'static str, String) {
        match self {
            Self::Pending => (
                TRUE,
                "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon".into(),
            ),
            Self::InProgress => (
                TRUE,
                "InstanceDeletionInProgress",
                "CustomResource deletion is in progress".into(),
            ),
            Self::Failed(error) => (
                TRUE,
                FAILED,
                format!("could not issue all deletes: {error}"),
            ),
            Self::Completed => (FALSE, "InstanceDeletionCompleted", "removed all instances".into()),
            Self::NeverEstablished => (FALSE, "NeverEstablished", "resource was never established".into()),
        }
    }

    /// Sets the condition about this step.
    pub fn report(self, definition: &mut CustomResourceDefinition, now: Timestamp) {
        let (status, reason, message) = self.condition();
        set(definition, new(TERMINATING, status, reason, message, now));
    }
}

/// Adds the finalizer and the condition when the deletion is requested.
pub(super) fn begin(definition: &mut CustomResourceDefinition, now: Timestamp) {
    let finalizers = &mut definition.metadata.finalizers;
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    Removal::Pending.report(definition, now);
}

/// Returns whether the objects of the kind must be deleted, because the definition is.
pub fn needs_removal(definition: &CustomResourceDefinition) -> bool {
    let metadata = &definition.metadata;
    let held = metadata
        .finalizers
        .iter()
        .any(|finalizer| finalizer == FINALIZER);
    held && metadata.deletion_timestamp.is_some()
}

/// Returns whether the last attempt to delete the objects of the kind has failed.
pub fn has_failed(definition: &CustomResourceDefinition) -> bool {
    let condition = get(&definition.status.conditions, TERMINATING);
    condition.is_some_and(|found| found.reason == FAILED)
}

/// Removes the finalizer.
pub fn remove_finalizer(definition: &mut CustomResourceDefinition) {
    let finalizers = &mut definition.metadata.finalizers;
    finalizers.retain(|finalizer| finalizer != FINALIZER);
}
