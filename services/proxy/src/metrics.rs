//! Metrics, with upstream's names where they mean the same.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use setpoint_telemetry::metrics::{counters, gauges, histograms};

use crate::backend::Kind;

const SECONDS: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0, 2.0, 4.0, 8.0, 16.0,
];
/// As [`SECONDS`], and longer ones: the times of annotations are whole seconds.
const PROGRAMMING_SECONDS: &[f64] = &[
    0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0,
];

static SYNC: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds that transactions took.";
    histograms(
        "kubeproxy_sync_proxy_rules_duration_seconds",
        help,
        &[],
        SECONDS,
    )
});
static FULL: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds that transactions with everything took.";
    histograms(
        "kubeproxy_sync_full_proxy_rules_duration_seconds",
        help,
        &[],
        SECONDS,
    )
});
static PARTIAL: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds that transactions with changes took.";
    histograms(
        "kubeproxy_sync_partial_proxy_rules_duration_seconds",
        help,
        &[],
        SECONDS,
    )
});
static PROGRAMMING: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from the change of an endpoint or a Service until it was programmed.";
    let name = "kubeproxy_network_programming_duration_seconds";
    histograms(name, help, &[], PROGRAMMING_SECONDS)
});
static SEEN: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from the arrival of a change at the proxy until it was programmed.";
    histograms(
        "setpoint_proxy_programming_duration_seconds",
        help,
        &[],
        SECONDS,
    )
});
static FAILURES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Transactions that failed.";
    counters(
        "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
        help,
        &[],
    )
});
static SERVICE_CHANGES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Changes of Services.";
    counters(
        "kubeproxy_sync_proxy_rules_service_changes_total",
        help,
        &[],
    )
});
static ENDPOINT_CHANGES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Changes of EndpointSlices.";
    counters(
        "kubeproxy_sync_proxy_rules_endpoint_changes_total",
        help,
        &[],
    )
});
static LAST: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "The time of the last transaction that succeeded, in seconds since 1970.";
    gauges(
        "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
        help,
        &[],
    )
});

/// Counts Services that were left out because the kernel refuses them.
pub static REFUSED: LazyLock<IntCounter> = LazyLock::new(|| {
    let help = "Services that were not programmed because the kernel refuses them.";
    counters("setpoint_proxy_refused_services_total", help, &[]).with_label_values(NONE)
});

/// The metrics of the process.
#[derive(Clone)]
pub struct Metrics {
    sync: Histogram,
    full: Histogram,
    partial: Histogram,
    programming: Histogram,
    seen: Histogram,
    failures: IntCounter,
    last: IntGauge,
    /// Changes of Services.
    pub service_changes: IntCounter,
    /// Changes of EndpointSlices.
    pub endpoint_changes: IntCounter,
}

const NONE: &[&str] = &[];

impl Metrics {
    /// Returns the metrics.
    pub fn new() -> Self {
        Self {
            sync: SYNC.with_label_values(NONE),
            full: FULL.with_label_values(NONE),
            partial: PARTIAL.with_label_values(NONE),
            programming: PROGRAMMING.with_label_values(NONE),
            seen: SEEN.with_label_values(NONE),
            failures: FAILURES.with_label_values(NONE),
            last: LAST.with_label_values(NONE),
            service_changes: SERVICE_CHANGES.with_label_values(NONE),
            endpoint_changes: ENDPOINT_CHANGES.with_label_values(NONE),
        }
    }

    /// Counts a transaction that was made.
    pub fn synced(&self, kind: Kind, took: Duration) {
        let seconds = took.as_secs_f64();
        match kind {
            Kind::Nothing => return,
            Kind::Full => self.full.observe(seconds),
            Kind::Partial => self.partial.observe(seconds),
        }
        self.sync.observe(seconds);
        self.last.set(Timestamp::now().as_second());
    }

    /// Counts a change that is programmed now: it was made at `changed`, and arrived `ago`.
    pub fn programmed(&self, changed: Option<Timestamp>, ago: Duration) {
        self.seen.observe(ago.as_secs_f64());
        if let Some(changed) = changed {
            let since = Timestamp::now().duration_since(changed);
            self.programming.observe(since.as_secs_f64().max(0.0));
        }
    }

    /// Counts a transaction that was not made.
    pub fn failed(&self) {
        self.failures.inc();
    }
}
