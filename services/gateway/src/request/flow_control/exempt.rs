//! The requests of an exempt level: counted and shown, and nothing else.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;
use setpoint_fairness::{Adjustment, Demand, Limits, Observed, RequestDump, Work};

use super::level_metrics::LevelSeries;
use super::limited::About;

/// The requests of an exempt level. One takes one seat, whatever its work is.
#[derive(Debug)]
pub(super) struct Exempt {
    state: Mutex<State>,
    pub(super) series: LevelSeries,
}

#[derive(Debug)]
struct State {
    limits: Limits,
    executing: BTreeMap<u64, (About, Instant)>,
    peak: usize,
    dispatched: u64,
}

impl Exempt {
    pub(super) fn new(name: &str, limits: Limits) -> Self {
        let state = State {
            limits,
            executing: BTreeMap::new(),
            peak: 0,
            dispatched: 0,
        };
        Self {
            state: Mutex::new(state),
            series: LevelSeries::of(name),
        }
    }

    pub(super) fn configure(&self, limits: Limits) {
        self.state.lock().limits = limits;
    }

    /// Begins a request. Returns the number by which it ends.
    pub(super) fn begin(&self, about: About) -> u64 {
        let now = tokio::time::Instant::now().into_std();
        let mut state = self.state.lock();
        state.dispatched += 1;
        let number = state.dispatched;
        state.executing.insert(number, (about, now));
        state.peak = state.peak.max(state.executing.len());
        self.series.observe_exempt(state.executing.len());
        number
    }

    pub(super) fn end(&self, number: u64) {
        let mut state = self.state.lock();
        let ended = state.executing.remove(&number);
        self.series.observe_exempt(state.executing.len());
        drop(state);
        drop(ended);
    }

    pub(super) fn executing(&self) -> usize {
        self.state.lock().executing.len()
    }

    pub(super) fn dispatched(&self) -> u64 {
        self.state.lock().dispatched
    }

    /// Shows the requests.
    pub(super) fn for_each(&self, mut show: impl FnMut(&RequestDump<'_, About>)) {
        for (about, arrived) in self.state.lock().executing.values() {
            show(&RequestDump {
                about,
                work: Work::default(),
                arrived: *arrived,
                started: Some(*arrived),
            });
        }
    }

    /// Returns the most requests at a time since the last call.
    pub(super) fn demand(&self) -> Adjustment {
        let mut state = self.state.lock();
        let executing = state.executing.len();
        let peak = std::mem::replace(&mut state.peak, executing);
        let mut demand = Demand::default();
        demand.update(Observed {
            max: peak as f64,
            ..Observed::default()
        });
        Adjustment {
            limits: state.limits,
            demand,
            current: 0,
            is_exempt: true,
        }
    }
}
