//! Lease: its term fences the writes of its holder (see `admission::plugins::lease_term`).

use setpoint_proto::coordination::{Lease, LeaseSpec};

use super::{StoredKind, Writes};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

impl StoredKind for Lease {
    const CREATES_ON_UPDATE: bool = true;
    const WRITES: Writes = Writes::Heartbeats;
    /// Otherwise a client could acquire the Lease without having read its current holder.
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn prepare_create(&mut self) {
        drop_disabled(&mut self.spec, &LeaseSpec::default());
    }

    fn prepare_update(&mut self, old: &Self) {
        drop_disabled(&mut self.spec, &old.spec);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let spec = &self.spec;
        if let Some(seconds) = spec.lease_duration_seconds
            && seconds <= 0
        {
            let at = path.field("leaseDurationSeconds");
            errors.invalid(&at, seconds, "must be greater than 0");
        }
        if let Some(transitions) = spec.lease_transitions {
            errors.non_negative(&path.field("leaseTransitions"), transitions);
        }
    }
}

/// Drops the fields of coordinated leader election, which Kubernetes has disabled by default.
fn drop_disabled(new: &mut LeaseSpec, old: &LeaseSpec) {
    if old.strategy.is_none() {
        new.strategy = None;
    }
    if old.preferred_holder.is_none() {
        new.preferred_holder = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_is_positive_and_the_transitions_are_not_negative() {
        let mut lease = Lease::default();
        lease.spec.lease_duration_seconds = Some(0);
        lease.spec.lease_transitions = Some(-1);
        let mut errors = FieldErrors::default();
        lease.validate(&mut errors);
        let messages = errors.to_string();
        assert!(
            messages
                .contains("spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")
        );
        assert!(messages.contains("spec.leaseTransitions: Invalid value: -1"));
    }
}
