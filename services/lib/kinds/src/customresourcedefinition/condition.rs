//! The conditions of a definition.

use jiff::Timestamp;
use setpoint_model::condition;
use setpoint_proto::apiextensions::{CustomResourceDefinition, CustomResourceDefinitionCondition};

/// Whether names and schema are in use, and objects can be written.
pub(super) const ESTABLISHED: &str = "Established";
pub(super) const NAMES_ACCEPTED: &str = "NamesAccepted";
pub(super) const TERMINATING: &str = "Terminating";
pub(super) const APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";

/// Returns a condition that changed now.
pub(super) fn new(
    kind: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> CustomResourceDefinitionCondition {
    CustomResourceDefinitionCondition {
        r#type: kind.into(),
        status: status.into(),
        last_transition_time: now.into(),
        reason: reason.into(),
        message: message.into(),
        ..Default::default()
    }
}

/// Sets a condition. The time of its transition changes only with the status.
pub(super) fn set(
    definition: &mut CustomResourceDefinition,
    condition: CustomResourceDefinitionCondition,
) {
    condition::set(&mut definition.status.conditions, condition);
}
