//! The metrics of encryption, with Kubernetes' names.

use std::sync::LazyLock;

use prometheus::{IntCounter, IntCounterVec};
use setpoint_telemetry::metrics::counters;

static TRANSFORMATIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Total number of transformations. Successful transformation will have a status 'OK' and a varied status string when the transformation fails.";
    let labels = [
        "resource",
        "transformation_type",
        "transformer_prefix",
        "status",
    ];
    counters(
        "apiserver_storage_transformation_operations_total",
        help,
        &labels,
    )
});

static CACHE_MISSES: LazyLock<IntCounter> = LazyLock::new(|| {
    let help = "Total number of cache misses while accessing key decryption key(KEK).";
    let name = "apiserver_storage_envelope_transformation_cache_misses_total";
    counters(name, help, &[]).with_label_values(&[] as &[&str])
});

static RELOADS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Total number of reload successes and failures of encryption configuration. After a failure the configuration before is in force.";
    counters(
        "apiserver_encryption_config_controller_automatic_reloads_total",
        help,
        &["status"],
    )
});

/// Registers the metrics, so that all of them are there from the start.
pub(crate) fn register() {
    LazyLock::force(&TRANSFORMATIONS);
    LazyLock::force(&CACHE_MISSES);
    for status in ["success", "failure"] {
        RELOADS.with_label_values(&[status]);
    }
}

/// Counts a value of a resource that was sealed or opened by the provider with this prefix.
pub(crate) fn transformed(
    direction: &str,
    (group, resource): (&str, &str),
    prefix: &str,
    succeeded: bool,
) {
    let resource = match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    };
    let prefix = if prefix.is_empty() {
        "identity"
    } else {
        prefix
    };
    let status = if succeeded { "OK" } else { "Unknown" };
    let labels = [resource.as_str(), direction, prefix, status];
    TRANSFORMATIONS.with_label_values(&labels).inc();
}

/// Counts a key that a provider is asked for.
pub(crate) fn cache_missed() {
    CACHE_MISSES.inc();
}

/// Counts a change of the configuration file.
pub fn reloaded(succeeded: bool) {
    let status = if succeeded { "success" } else { "failure" };
    RELOADS.with_label_values(&[status]).inc();
}
