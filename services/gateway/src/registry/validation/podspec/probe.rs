//! Validates probes.

use setpoint_proto::core::Probe;

use super::handler;
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

/// Finds what is wrong with the probe called `name`.
pub fn validate(probe: &Probe, name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    handler::validate_probe(&probe.handler, path, errors);
    for (number, field) in [
        (probe.initial_delay_seconds, "initialDelaySeconds"),
        (probe.timeout_seconds, "timeoutSeconds"),
        (probe.period_seconds, "periodSeconds"),
        (probe.success_threshold, "successThreshold"),
        (probe.failure_threshold, "failureThreshold"),
    ] {
        errors.non_negative(&path.field(field), number);
    }
    validate_grace(
        probe,
        name,
        &path.field("terminationGracePeriodSeconds"),
        errors,
    );
    // Only readiness goes to and fro; the others end with their first success.
    if name != "readinessProbe" && probe.success_threshold != 1 {
        let at = path.field("successThreshold");
        errors.invalid(&at, probe.success_threshold, "must be 1");
    }
}

fn validate_grace(probe: &Probe, name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(grace) = probe.termination_grace_period_seconds else {
        return;
    };
    if grace <= 0 {
        errors.invalid(path, grace, "must be greater than 0");
    }
    if name == "readinessProbe" {
        errors.invalid(path, grace, "must not be set for readinessProbes");
    }
}
