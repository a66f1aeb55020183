//! The metrics of a controller's rounds.

use std::sync::LazyLock;

use prometheus::{
    Histogram, HistogramTimer, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
};

use super::{counters, gauges, histograms};

const LABELS: &[&str] = &["controller"];

/// The metrics of one controller.
pub(crate) struct Rounds {
    controller: &'static str,
    active: IntGauge,
    errors: IntCounter,
    noops: IntCounter,
    time: Histogram,
}

impl Rounds {
    pub(crate) fn new(controller: &'static str) -> Self {
        static ACTIVE: LazyLock<IntGaugeVec> = LazyLock::new(|| {
            let help = "Workers that are at a round.";
            gauges("controller_runtime_active_workers", help, LABELS)
        });
        static ERRORS: LazyLock<IntCounterVec> = LazyLock::new(|| {
            let help = "Rounds that failed.";
            counters("controller_runtime_reconcile_errors_total", help, LABELS)
        });
        static NOOPS: LazyLock<IntCounterVec> = LazyLock::new(|| {
            let help = "Rounds that found nothing to do.";
            counters("setpoint_noop_reconciles_total", help, LABELS)
        });
        static TIME: LazyLock<HistogramVec> = LazyLock::new(|| {
            let help = "How long rounds took.";
            histograms("controller_runtime_reconcile_time_seconds", help, LABELS)
        });
        Self {
            controller,
            active: ACTIVE.with_label_values(&[controller]),
            errors: ERRORS.with_label_values(&[controller]),
            noops: NOOPS.with_label_values(&[controller]),
            time: TIME.with_label_values(&[controller]),
        }
    }

    /// A round begins; it ends when the result is dropped.
    pub(crate) fn begin(&self) -> Active {
        self.active.inc();
        Active {
            workers: self.active.clone(),
            _time: self.time.start_timer(),
        }
    }

    /// A round has ended like this: `success`, `error`, `requeue` or `requeue_after`.
    pub(crate) fn ended(&self, result: &'static str) {
        static TOTAL: LazyLock<IntCounterVec> = LazyLock::new(|| {
            let help = "Rounds by how they ended.";
            let labels = &["controller", "result"];
            counters("controller_runtime_reconcile_total", help, labels)
        });
        TOTAL.with_label_values(&[self.controller, result]).inc();
        if result == "error" {
            self.errors.inc();
        }
    }

    /// A round found nothing to do.
    pub(crate) fn noop(&self) {
        self.noops.inc();
    }
}

/// A round that is under way.
pub(crate) struct Active {
    workers: IntGauge,
    _time: HistogramTimer,
}

impl Drop for Active {
    fn drop(&mut self) {
        self.workers.dec();
    }
}
