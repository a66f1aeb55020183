//! Metrics, under upstream's names so that existing dashboards work.

mod queue;
mod ratios;
mod reconciles;

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, register_int_counter};
use setpoint_telemetry::metrics::{UNIQUE, counters, gauges, histograms};

pub use queue::Load;
pub(crate) use queue::{Queue, watch_queue};
pub use reconciles::{Active, Reconciles};

/// A call to the gateway was answered.
pub(crate) fn called(code: u16, method: &str, host: &str, took: Duration) {
    static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
        let help = "Calls to the gateway by HTTP status, method and host.";
        counters(
            "rest_client_requests_total",
            help,
            &["code", "method", "host"],
        )
    });
    static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
        let help = "Seconds that calls to the gateway took.";
        let name = "rest_client_request_duration_seconds";
        // Upstream's.
        let buckets = [
            0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
        ];
        histograms(name, help, &["verb", "host"], &buckets)
    });
    let code = match code {
        200 => "200".into(),
        other => std::borrow::Cow::Owned(other.to_string()),
    };
    REQUESTS.with_label_values(&[&*code, method, host]).inc();
    let duration = DURATION.with_label_values(&[method, host]);
    duration.observe(took.as_secs_f64());
}

/// Sets whether this process holds the lease.
pub(crate) fn leading(lease: &str, yes: bool) {
    static LEADING: LazyLock<IntGaugeVec> = LazyLock::new(|| {
        let help = "1 while this process holds the lease.";
        gauges("leader_election_master_status", help, &["name"])
    });
    LEADING.with_label_values(&[lease]).set(yes.into());
}

/// An Event was dropped, since there were too many.
pub(crate) fn event_dropped() {
    static DROPPED: LazyLock<IntCounter> = LazyLock::new(|| {
        let help = "Events that were not written, since there were too many.";
        register_int_counter!("setpoint_events_dropped_total", help).expect(UNIQUE)
    });
    DROPPED.inc();
}
