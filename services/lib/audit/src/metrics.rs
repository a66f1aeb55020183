//! The metrics of audit, with Kubernetes' names.

use std::sync::LazyLock;

use prometheus::{IntCounter, IntCounterVec};
use setpoint_telemetry::metrics::counters;

use crate::policy::Level;

static EVENTS: LazyLock<IntCounter> = LazyLock::new(|| {
    let help = "Counter of audit events generated and sent to the audit backend.";
    counters("apiserver_audit_event_total", help, &[]).with_label_values(&[] as &[&str])
});

static LEVELS: LazyLock<[IntCounter; Level::ALL.len()]> = LazyLock::new(|| {
    let help = "Counter of policy levels for audit events (1 per request).";
    let levels = counters("apiserver_audit_level_total", help, &["level"]);
    Level::ALL.map(|level| levels.with_label_values(&[level.name()]))
});

static ERRORS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.";
    counters("apiserver_audit_error_total", help, &["plugin"])
});

/// Always 0: no request waits for a back end.
static REJECTED: LazyLock<IntCounter> = LazyLock::new(|| {
    let help = "Counter of apiserver requests rejected due to an error in audit logging backend.";
    counters("apiserver_audit_requests_rejected_total", help, &[]).with_label_values(&[] as &[&str])
});

static RELOADS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Changes of the audit policy file that were read, by result: 'success' or 'failure'. After a failure the policy before is in force.";
    counters("setpoint_audit_policy_reloads_total", help, &["status"])
});

pub(crate) fn event() {
    EVENTS.inc();
}

pub(crate) fn level(level: Level) {
    LEVELS[level as usize].inc();
}

pub(crate) fn errors(plugin: &str, events: usize) {
    let events = u64::try_from(events).unwrap_or(u64::MAX);
    ERRORS.with_label_values(&[plugin]).inc_by(events);
}

/// Registers the metrics, so that all of them are there from the start.
pub(crate) fn register() {
    for metric in [&EVENTS, &REJECTED] {
        LazyLock::force(metric);
    }
    LazyLock::force(&LEVELS);
    for plugin in ["buffered", "log", "webhook"] {
        ERRORS.with_label_values(&[plugin]);
    }
    for status in ["success", "failure"] {
        RELOADS.with_label_values(&[status]);
    }
}

/// Counts a change of the policy file.
pub fn reloaded(succeeded: bool) {
    let status = if succeeded { "success" } else { "failure" };
    RELOADS.with_label_values(&[status]).inc();
}

/// Returns the number of events that a back end has lost.
#[cfg(test)]
pub(crate) fn failed(plugin: &str) -> u64 {
    ERRORS.with_label_values(&[plugin]).get()
}
