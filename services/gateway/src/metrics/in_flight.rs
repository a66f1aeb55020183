//! The gauge of requests in flight.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Opts};

use setpoint_telemetry::metrics::UNIQUE;

/// The window of the reported maximum. A scrape every few seconds would miss most requests if it read the current
/// level.
const WINDOW: Duration = Duration::from_secs(1);

const KINDS: [&str; 2] = ["readOnly", "mutating"];

static LEVELS: LazyLock<[Mutex<Level>; 2]> = LazyLock::new(|| {
    prometheus::register(Box::new(Gauges::new())).expect(UNIQUE);
    [(); 2].map(|()| Mutex::new(Level::new(Instant::now())))
});

/// A request in flight; it ends when this is dropped.
pub(super) struct InFlight {
    writes: bool,
}

impl InFlight {
    /// Counts a request as begun.
    pub(super) fn begin(writes: bool) -> Self {
        LEVELS[usize::from(writes)].lock().increment(Instant::now());
        Self { writes }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        LEVELS[usize::from(self.writes)]
            .lock()
            .decrement(Instant::now());
    }
}

/// The number of requests in flight, and its maximum in this window and in the previous one.
#[derive(Debug)]
struct Level {
    current: i64,
    max: i64,
    previous_max: i64,
    window_start: Instant,
}

impl Level {
    const fn new(now: Instant) -> Self {
        Self {
            current: 0,
            max: 0,
            previous_max: 0,
            window_start: now,
        }
    }

    fn increment(&mut self, now: Instant) {
        self.rotate(now);
        self.current += 1;
        self.max = self.max.max(self.current);
    }

    fn decrement(&mut self, now: Instant) {
        self.rotate(now);
        self.current -= 1;
    }

    fn peak(&mut self, now: Instant) -> i64 {
        self.rotate(now);
        self.max.max(self.previous_max)
    }

    /// Starts a new window if this one is over.
    fn rotate(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.window_start);
        if passed < WINDOW {
            return;
        }
        self.previous_max = if passed < 2 * WINDOW {
            self.max
        } else {
            self.current
        };
        self.max = self.current;
        self.window_start = now;
    }
}

/// A collector that reads the levels at each scrape.
struct Gauges(IntGaugeVec);

impl Gauges {
    fn new() -> Self {
        let help = "The maximum number of concurrent requests in the last second.";
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
    fn the_peak_covers_a_burst_between_two_scrapes_and_then_drops() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut level = Level::new(start);
        (0..5).for_each(|_| level.increment(at(10)));
        (0..4).for_each(|_| level.decrement(at(20)));
        assert_eq!(level.peak(at(500)), 5);
        assert_eq!(level.peak(at(1100)), 5);
        assert_eq!(level.peak(at(2200)), 1);
        level.decrement(at(2300));
        assert_eq!(level.peak(at(9000)), 0);
    }
}
