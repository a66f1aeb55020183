//! The requests of an exempt level: counted, and nothing else.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use setpoint_fairness::{Adjustment, Demand, Limits, Observed};

/// The numbers of an exempt level. A request takes one seat, whatever its work is.
#[derive(Debug)]
pub(super) struct Exempt {
    limits: Mutex<Limits>,
    executing: AtomicUsize,
    peak: AtomicUsize,
    dispatched: AtomicU64,
}

impl Exempt {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits: Mutex::new(limits),
            executing: AtomicUsize::default(),
            peak: AtomicUsize::default(),
            dispatched: AtomicU64::default(),
        }
    }

    pub(super) fn configure(&self, limits: Limits) {
        *self.limits.lock() = limits;
    }

    pub(super) fn begin(&self) {
        let executing = self.executing.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(executing, Ordering::Relaxed);
        self.dispatched.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.executing.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn executing(&self) -> usize {
        self.executing.load(Ordering::Relaxed)
    }

    pub(super) fn dispatched(&self) -> u64 {
        self.dispatched.load(Ordering::Relaxed)
    }

    /// Returns the most requests at a time since the last call.
    pub(super) fn demand(&self) -> Adjustment {
        let peak = self.peak.swap(self.executing(), Ordering::Relaxed);
        let mut demand = Demand::default();
        demand.update(Observed {
            max: peak as f64,
            ..Observed::default()
        });
        Adjustment {
            limits: *self.limits.lock(),
            demand,
            current: 0,
            is_exempt: true,
        }
    }
}
