//! How many requests are being answered at once.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Opts};

use setpoint_telemetry::metrics::UNIQUE;

/// A look every few seconds would miss most requests: what it finds is the most there were in the last second.
const WINDOW: Duration = Duration::from_secs(1);

const KINDS: [&str; 2] = ["readOnly", "mutating"];

static LEVELS: LazyLock<[Mutex<Level>; 2]> = LazyLock::new(|| {
    prometheus::register(Box::new(Gauges::new())).expect(UNIQUE);
    [(); 2].map(|()| Mutex::new(Level::new(Instant::now())))
});

/// A request that is being answered for as long as this lives.
pub(super) struct InFlight {
    writes: bool,
}

impl InFlight {
    /// One more.
    pub(super) fn begin(writes: bool) -> Self {
        LEVELS[usize::from(writes)].lock().rise(Instant::now());
        Self { writes }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        LEVELS[usize::from(self.writes)].lock().fall(Instant::now());
    }
}

/// How many there are, and the most there were in this window and in the one before.
#[derive(Debug)]
struct Level {
    now: i64,
    most: i64,
    before: i64,
    since: Instant,
}

impl Level {
    const fn new(now: Instant) -> Self {
        Self {
            now: 0,
            most: 0,
            before: 0,
            since: now,
        }
    }

    fn rise(&mut self, now: Instant) {
        self.turn(now);
        self.now += 1;
        self.most = self.most.max(self.now);
    }

    fn fall(&mut self, now: Instant) {
        self.turn(now);
        self.now -= 1;
    }

    fn peak(&mut self, now: Instant) -> i64 {
        self.turn(now);
        self.most.max(self.before)
    }

    fn turn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        if passed < WINDOW {
            return;
        }
        self.before = if passed < 2 * WINDOW {
            self.most
        } else {
            self.now
        };
        self.most = self.now;
        self.since = now;
    }
}

/// Reads the levels when metrics are read.
struct Gauges(IntGaugeVec);

impl Gauges {
    fn new() -> Self {
        let help = "The most requests that were being answered at once in the last second.";
        let opts = Opts::new("apiserver_current_inflight_requests", help);
        Self(IntGaugeVec::new(opts, &["request_kind"]).expect("name and label are valid"))
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for (kind, level) in KINDS.iter().zip(&*LEVELS) {
            let peak = level.lock().peak(Instant::now());
            self.0.with_label_values(&[*kind]).set(peak);
        }
        self.0.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_between_two_looks_is_seen_and_then_forgotten() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut level = Level::new(start);
        (0..5).for_each(|_| level.rise(at(10)));
        (0..4).for_each(|_| level.fall(at(20)));
        assert_eq!(level.peak(at(500)), 5);
        assert_eq!(level.peak(at(1100)), 5, "within the last second or so");
        assert_eq!(level.peak(at(2200)), 1, "the one that is still there");
        level.fall(at(2300));
        assert_eq!(level.peak(at(9000)), 0);
    }
}
