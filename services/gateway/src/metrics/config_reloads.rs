//! The metrics of configuration files that are read again, with upstream's names and labels.

use std::sync::LazyLock;

use jiff::Timestamp;
use prometheus::{IntCounterVec, IntGaugeVec};

use super::{counters, gauges, hashed};

const LABELS: [&str; 2] = ["status", "apiserver_id_hash"];

static AUTHENTICATION: LazyLock<Metrics> = LazyLock::new(|| Metrics {
    reloads: counters(
        "apiserver_authentication_config_controller_automatic_reloads_total",
        "Total number of automatic reloads of authentication configuration split by status and apiserver identity.",
        &LABELS,
    ),
    last: gauges(
        "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
        "Timestamp of the last automatic reload of authentication configuration split by status and apiserver identity.",
        &LABELS,
    ),
});

static AUTHORIZATION: LazyLock<Metrics> = LazyLock::new(|| Metrics {
    reloads: counters(
        "apiserver_authorization_config_controller_automatic_reloads_total",
        "Total number of automatic reloads of authorization configuration split by status and apiserver identity.",
        &LABELS,
    ),
    last: gauges(
        "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
        "Timestamp of the last automatic reload of authorization configuration split by status and apiserver identity.",
        &LABELS,
    ),
});

struct Metrics {
    reloads: IntCounterVec,
    last: IntGaugeVec,
}

/// The metrics of one file.
pub(crate) struct ConfigReloads {
    metrics: &'static Metrics,
    instance: String,
}

impl ConfigReloads {
    /// Returns those of the configuration of authentication; `instance` is this server.
    pub(crate) fn authentication(instance: &str) -> Self {
        Self::of(&AUTHENTICATION, instance)
    }

    /// Returns those of the configuration of authorization; `instance` is this server.
    pub(crate) fn authorization(instance: &str) -> Self {
        Self::of(&AUTHORIZATION, instance)
    }

    /// They are there from the start, so that a first failure is an increase.
    fn of(metrics: &'static Metrics, instance: &str) -> Self {
        let instance = hashed(instance);
        for status in ["success", "failure"] {
            metrics.reloads.with_label_values(&[status, &instance]);
        }
        Self { metrics, instance }
    }

    /// Counts a change of the file that was set in force, or was not.
    pub(crate) fn count(&self, succeeded: bool) {
        let status = if succeeded { "success" } else { "failure" };
        let labels = [status, self.instance.as_str()];
        self.metrics.reloads.with_label_values(&labels).inc();
        let now = Timestamp::now().as_second();
        self.metrics.last.with_label_values(&labels).set(now);
    }
}
