//! What is counted about requests, under the names that Kubernetes' dashboards know.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{
    HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, register_histogram_vec,
    register_int_counter_vec, register_int_gauge_vec,
};
use setpoint_codec::Kind;

const OF_KIND: [&str; 4] = ["group", "version", "resource", "subresource"];

/// From a cached read to a write that waits for a slow disk.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let labels = [
        "verb",
        "code",
        "group",
        "version",
        "resource",
        "subresource",
    ];
    register_int_counter_vec!("apiserver_request_total", "Requests answered.", &labels)
        .expect("the name is used once")
});

static DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    let labels = ["verb", "group", "version", "resource", "subresource"];
    let help = "Seconds until a request was answered; watches, which have no end, are left out.";
    register_histogram_vec!(
        "apiserver_request_duration_seconds",
        help,
        &labels,
        SECONDS.to_vec()
    )
    .expect("the name is used once")
});

static LONG_RUNNING: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Watches that are open.";
    register_int_gauge_vec!("apiserver_longrunning_requests", help, &OF_KIND)
        .expect("the name is used once")
});

static FENCED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Writes refused because the lease term of their writer had passed.";
    register_int_counter_vec!("setpoint_fenced_writes_total", help, &["lease"])
        .expect("the name is used once")
});

/// Counts a write that its fence refused.
pub(crate) fn fenced(lease: &str) {
    FENCED.with_label_values(&[lease]).inc();
}

/// Counts a request that has been answered, or a watch that has begun.
pub(crate) fn requested(
    verb: &str,
    kind: Option<&Kind>,
    subresource: &str,
    code: u16,
    took: Duration,
) {
    let [group, version, resource, subresource] = of_kind(kind, subresource);
    let status = code.to_string();
    REQUESTS
        .with_label_values(&[verb, &status, group, version, resource, subresource])
        .inc();
    if verb != "WATCH" {
        let duration = DURATION.with_label_values(&[verb, group, version, resource, subresource]);
        duration.observe(took.as_secs_f64());
    }
}

fn of_kind<'a>(kind: Option<&'a Kind>, subresource: &'a str) -> [&'a str; 4] {
    match kind {
        Some(kind) => [&kind.group, &kind.version, &kind.plural, subresource],
        None => [""; 4],
    }
}

/// A watch that is open for as long as this lives.
#[derive(Debug)]
pub(crate) struct Watching(IntGauge);

impl Watching {
    /// Counts one more.
    pub(crate) fn begin(kind: &Kind) -> Self {
        let gauge = LONG_RUNNING.with_label_values(&of_kind(Some(kind), ""));
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.dec();
    }
}
