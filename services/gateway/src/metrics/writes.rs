//! The metrics of writes: depth in their cascade, rejections by fences, and time to convergence.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounterVec, register_histogram};

use setpoint_telemetry::metrics::UNIQUE;

use super::{counters, histograms};

/// From a cached image on an idle node to an image that is pulled over a slow network.
const SECONDS: &[f64] = &[
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
    600.0,
];

static CONVERGENCE: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from the write of a generation to the write of the first status that observed it with everything ready. Observed once per generation, by the gateway that made the second write; a generation that is replaced before is not observed.";
    histograms("setpoint_convergence_seconds", help, &["kind"], SECONDS)
});

static DEPTH: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "For each write except those of Leases and Events: the number of writes that led to it, each caused by the one before. The first write of a cascade has depth 0.";
    let buckets = (0..=12).map(f64::from).collect();
    register_histogram!("setpoint_cascade_depth", help, buckets).expect(UNIQUE)
});

static FENCED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Writes rejected because the lease term of their writer is over.";
    counters("setpoint_fenced_writes_total", help, &["lease"])
});

static FLAPS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help =
        "Fields that two managers keep overwriting, counted by the gateway that reported it.";
    counters("setpoint_flaps_total", help, &["kind"])
});

/// Counts a field of an object of this kind that two managers keep overwriting.
pub(crate) fn flapped(kind: &str) {
    FLAPS.with_label_values(&[kind]).inc();
}

/// Counts a write that its fence rejected.
pub(crate) fn fenced(lease: &str) {
    FENCED.with_label_values(&[lease]).inc();
}

/// Observes the depth of a write: the number of writes that led to it.
pub(crate) fn written(depth: u32) {
    DEPTH.observe(f64::from(depth));
}

/// Observes the time after which an object of this kind met its spec.
pub(crate) fn converged(kind: &str, after: Duration) {
    CONVERGENCE
        .with_label_values(&[kind])
        .observe(after.as_secs_f64());
}
