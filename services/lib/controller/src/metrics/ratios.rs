//! Ratios of the last minutes: reconciles for each change, and the part of them that found nothing to do.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{GaugeVec, Opts};

use super::UNIQUE;

/// The length of a period; the ratios cover one to two.
const PERIOD: Duration = Duration::from_secs(300);

/// The counts of a controller's last periods, shared by its terms.
pub(super) fn recent(controller: &'static str) -> Arc<Recent> {
    static RATIOS: LazyLock<Ratios> = LazyLock::new(|| {
        let ratios = Ratios::new();
        prometheus::register(Box::new(ratios.clone())).expect(UNIQUE);
        ratios
    });
    let mut controllers = RATIOS.controllers.lock();
    controllers.entry(controller).or_default().clone()
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    reconciles: u32,
    noops: u32,
    changes: u32,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            reconciles: self.reconciles + other.reconciles,
            noops: self.noops + other.noops,
            changes: self.changes + other.changes,
        }
    }
}

/// The current period and the one before.
#[derive(Default)]
pub(super) struct Recent(Mutex<Periods>);

#[derive(Default)]
struct Periods {
    began: Option<Instant>,
    now: Counts,
    before: Counts,
}

impl Recent {
    pub(super) fn reconcile(&self) {
        self.0.lock().at(Instant::now()).reconciles += 1;
    }

    pub(super) fn noop(&self) {
        self.0.lock().at(Instant::now()).noops += 1;
    }

    pub(super) fn change(&self) {
        self.0.lock().at(Instant::now()).changes += 1;
    }

    fn counts(&self) -> Counts {
        self.0.lock().counts(Instant::now())
    }
}

impl Periods {
    fn at(&mut self, now: Instant) -> &mut Counts {
        let began = *self.began.get_or_insert(now);
        let passed = now.saturating_duration_since(began);
        if passed >= PERIOD {
            let ended = std::mem::take(&mut self.now);
            self.before = if passed < 2 * PERIOD {
                ended
            } else {
                Counts::default()
            };
            self.began = Some(now);
        }
        &mut self.now
    }

    fn counts(&mut self, now: Instant) -> Counts {
        self.at(now).plus(self.before)
    }
}

#[derive(Clone)]
struct Ratios {
    per_change: GaugeVec,
    noop: GaugeVec,
    controllers: Arc<Mutex<HashMap<&'static str, Arc<Recent>>>>,
}

impl Ratios {
    fn new() -> Self {
        let gauge = |name: &str, help: &str| {
            GaugeVec::new(Opts::new(name, help), &["controller"]).expect("the names are valid")
        };
        Self {
            per_change: gauge(
                "setpoint_reconciles_per_change",
                "Reconciles in the last 5 to 10 minutes for each new generation of an object that the controller reconciles; absent while there was none.",
            ),
            noop: gauge(
                "setpoint_noop_reconcile_ratio",
                "The part of the reconciles in the last 5 to 10 minutes that found nothing to do; absent while there was none.",
            ),
            controllers: Arc::default(),
        }
    }
}

impl Collector for Ratios {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.per_change.desc();
        all.extend(self.noop.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.per_change.reset();
        self.noop.reset();
        for (controller, recent) in self.controllers.lock().iter() {
            let Counts {
                reconciles,
                noops,
                changes,
            } = recent.counts();
            let reconciles = f64::from(reconciles);
            if changes > 0 {
                let gauge = self.per_change.with_label_values(&[*controller]);
                gauge.set(reconciles / f64::from(changes));
            }
            if reconciles > 0.0 {
                let gauge = self.noop.with_label_values(&[*controller]);
                gauge.set(f64::from(noops) / reconciles);
            }
        }
        let mut all = self.per_change.collect();
        all.extend(self.noop.collect());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_ago_no_longer_counts() {
        let start = Instant::now();
        let mut periods = Periods::default();
        periods.at(start).reconciles += 4;
        periods.at(start + PERIOD / 2).changes += 1;
        let one = Counts {
            reconciles: 4,
            noops: 0,
            changes: 1,
        };
        assert_eq!(periods.counts(start + PERIOD / 2), one);
        assert_eq!(
            periods.counts(start + PERIOD),
            one,
            "the period before counts"
        );
        assert_eq!(periods.counts(start + 2 * PERIOD), Counts::default());
    }
}
