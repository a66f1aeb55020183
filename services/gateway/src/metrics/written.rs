//! Writes: how deep in their cascade, refused by fences, and how long it took until a wish was met.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounterVec, register_histogram};

use setpoint_telemetry::metrics::UNIQUE;

use super::{counters, histograms};

/// From a cached image on an idle node to an image that is pulled over a slow line.
const SECONDS: &[f64] = &[
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
    600.0,
];

static CONVERGENCE: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds from the write of a generation to the write of the first status that observed it and had everything ready. Counted once a generation, by the gateway that made the second write; a generation that another replaced is not counted.";
    histograms("setpoint_convergence_seconds", help, &["kind"], SECONDS)
});

static DEPTH: LazyLock<Histogram> = LazyLock::new(|| {
    let help = "For each write, but those of Leases and Events: how many writes led to it, one because of the other. 0 is where a cascade begins.";
    let buckets = (0..=12).map(f64::from).collect();
    register_histogram!("setpoint_cascade_depth", help, buckets).expect(UNIQUE)
});

static FENCED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Writes refused because the lease term of their writer had passed.";
    counters("setpoint_fenced_writes_total", help, &["lease"])
});

static FLAPS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Fields that two managers took turns at, counted by the gateway that told of it.";
    counters("setpoint_flaps_total", help, &["kind"])
});

/// Two managers take turns at a field of an object of this kind.
pub(crate) fn flapped(kind: &str) {
    FLAPS.with_label_values(&[kind]).inc();
}

/// A write was refused by its fence.
pub(crate) fn fenced(lease: &str) {
    FENCED.with_label_values(&[lease]).inc();
}

/// A write was made that so many others led to.
pub(crate) fn written(depth: u32) {
    DEPTH.observe(f64::from(depth));
}

/// What was wanted of an object of this kind was met.
pub(crate) fn converged(kind: &str, after: Duration) {
    CONVERGENCE
        .with_label_values(&[kind])
        .observe(after.as_secs_f64());
}
