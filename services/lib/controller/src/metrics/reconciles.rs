//! The metrics of a controller's reconciles.

use std::sync::{Arc, LazyLock};

use prometheus::{
    Histogram, HistogramTimer, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
};

use super::ratios::{Recent, recent};
use super::{counters, gauges, histograms};

const LABELS: &[&str] = &["controller"];

/// The results of a reconcile.
const RESULTS: [&str; 4] = ["success", "error", "requeue", "requeue_after"];

/// The buckets that upstream has for this name.
const SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

static ACTIVE: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Workers that are busy.";
    gauges("controller_runtime_active_workers", help, LABELS)
});
static WORKERS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let help = "Workers: reconciles that may run at once.";
    gauges("controller_runtime_max_concurrent_reconciles", help, LABELS)
});
static TOTAL: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Reconciles by how they ended.";
    let labels = &["controller", "result"];
    counters("controller_runtime_reconcile_total", help, labels)
});
static ERRORS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Reconciles that failed.";
    counters("controller_runtime_reconcile_errors_total", help, LABELS)
});
static PANICS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Reconciles that panicked.";
    counters("controller_runtime_reconcile_panics_total", help, LABELS)
});
static TIME: LazyLock<HistogramVec> = LazyLock::new(|| {
    let help = "Seconds that reconciles took.";
    let name = "controller_runtime_reconcile_time_seconds";
    histograms(name, help, LABELS, SECONDS)
});
static NOOPS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Reconciles that found nothing to do.";
    counters("setpoint_noop_reconciles_total", help, LABELS)
});
static CHANGES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help =
        "New generations of the objects that a controller reconciles, as its leader saw them.";
    counters("setpoint_changes_total", help, LABELS)
});

/// The metrics of one controller.
pub struct Reconciles {
    controller: &'static str,
    active: IntGauge,
    errors: IntCounter,
    panics: IntCounter,
    noops: IntCounter,
    changes: IntCounter,
    time: Histogram,
    recent: Arc<Recent>,
}

impl Reconciles {
    /// Returns the metrics of the controller of this name, with this number of workers.
    pub fn new(controller: &'static str, workers: usize) -> Self {
        let label = &[controller];
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        WORKERS.with_label_values(label).set(workers);
        for result in RESULTS {
            // A rate needs a beginning.
            TOTAL.with_label_values(&[controller, result]);
        }
        Self {
            controller,
            active: ACTIVE.with_label_values(label),
            errors: ERRORS.with_label_values(label),
            panics: PANICS.with_label_values(label),
            noops: NOOPS.with_label_values(label),
            changes: CHANGES.with_label_values(label),
            time: TIME.with_label_values(label),
            recent: recent(controller),
        }
    }

    /// Begins a reconcile, which ends when the result is dropped.
    pub fn begin(&self) -> Active {
        self.active.inc();
        Active {
            workers: self.active.clone(),
            _time: self.time.start_timer(),
        }
    }

    /// Counts a reconcile by its result: `success`, `error`, `requeue` or `requeue_after`.
    pub fn ended(&self, result: &'static str) {
        TOTAL.with_label_values(&[self.controller, result]).inc();
        self.recent.reconcile();
        if result == "error" {
            self.errors.inc();
        }
    }

    /// Counts a reconcile that found nothing to do.
    pub fn noop(&self) {
        self.noops.inc();
        self.recent.noop();
    }

    /// Counts a reconcile that panicked.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Counts a new generation of an object that the controller reconciles.
    pub fn changed(&self) {
        self.changes.inc();
        self.recent.change();
    }
}

/// A reconcile in progress.
pub struct Active {
    workers: IntGauge,
    _time: HistogramTimer,
}

impl Drop for Active {
    fn drop(&mut self) {
        self.workers.dec();
    }
}
