//! What is counted, under upstream's names so that existing dashboards work.

mod queue;
mod rounds;

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{
    HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, register_histogram_vec,
    register_int_counter, register_int_counter_vec, register_int_gauge_vec,
};

pub(crate) use queue::{Queue, watch_queue};
pub(crate) use rounds::Rounds;

/// From a tenth of a millisecond to ten seconds.
fn buckets() -> Vec<f64> {
    vec![
        0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
        2.5, 5.0, 10.0,
    ]
}

fn histograms(name: &str, help: &str, labels: &[&str]) -> HistogramVec {
    register_histogram_vec!(name, help, labels, buckets()).expect("each name is registered once")
}

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register_int_counter_vec!(name, help, labels).expect("each name is registered once")
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register_int_gauge_vec!(name, help, labels).expect("each name is registered once")
}

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
        let help = "How long calls to the gateway took.";
        histograms(
            "rest_client_request_duration_seconds",
            help,
            &["verb", "host"],
        )
    });
    let code = match code {
        200 => "200".into(),
        other => std::borrow::Cow::Owned(other.to_string()),
    };
    REQUESTS.with_label_values(&[&*code, method, host]).inc();
    let duration = DURATION.with_label_values(&[method, host]);
    duration.observe(took.as_secs_f64());
}

/// This process leads under this lease, or no longer does.
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
        register_int_counter!("setpoint_events_dropped_total", help)
            .expect("each name is registered once")
    });
    DROPPED.inc();
}
