//! The demand of a level for seats, over time.

use std::time::Instant;

/// The share of the smoothed demand that remains after a period, if the demand falls: half of it after 5 minutes.
const SMOOTHING: f64 = 0.977;

/// Integrates a value over time.
#[derive(Clone, Debug)]
pub struct Integrator {
    since: Instant,
    value: f64,
    elapsed: f64,
    sum: f64,
    squares: f64,
    max: f64,
}

/// The values of an integrator since it was reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// The time, in seconds.
    pub elapsed: f64,
    /// The average, weighted by time.
    pub average: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The largest value.
    pub max: f64,
}

impl Integrator {
    /// Returns an integrator of a value that is 0 now.
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            value: 0.0,
            elapsed: 0.0,
            sum: 0.0,
            squares: 0.0,
            max: 0.0,
        }
    }

    /// Sets the value from now on.
    pub fn set(&mut self, now: Instant, value: usize) {
        self.advance(now);
        self.value = value as f64;
        self.max = self.max.max(self.value);
    }

    /// Returns what was seen, and begins again with the current value.
    pub fn reset(&mut self, now: Instant) -> Observed {
        self.advance(now);
        let observed = self.observed();
        (self.elapsed, self.sum, self.squares) = (0.0, 0.0, 0.0);
        self.max = self.value;
        observed
    }

    fn observed(&self) -> Observed {
        if self.elapsed <= 0.0 {
            return Observed {
                max: self.max,
                ..Observed::default()
            };
        }
        let average = self.sum / self.elapsed;
        let variance = self.squares / self.elapsed - average * average;
        Observed {
            elapsed: self.elapsed,
            average,
            // Rounding may make it negative.
            deviation: variance.max(0.0).sqrt(),
            max: self.max,
        }
    }

    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.elapsed += passed;
        self.sum += self.value * passed;
        self.squares += self.value * self.value * passed;
    }
}

/// The demand of a level, as of the last period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// The average, weighted by time.
    pub average: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The most seats.
    pub high_watermark: usize,
    /// The average and the deviation together; if they fall, it follows slowly.
    pub smoothed: f64,
}

impl Demand {
    /// Adds a period.
    pub fn update(&mut self, observed: Observed) {
        self.high_watermark = observed.max.round() as usize;
        if observed.elapsed <= 0.0 {
            return;
        }
        (self.average, self.deviation) = (observed.average, observed.deviation);
        let envelope = observed.average + observed.deviation;
        let falling = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * envelope;
        self.smoothed = envelope.max(falling);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_demand_is_weighted_by_time() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut integrator = Integrator::new(start);
        integrator.set(at(5), 10);
        let observed = integrator.reset(at(10));
        assert_eq!((observed.elapsed, observed.average), (10.0, 5.0));
        assert_eq!((observed.deviation, observed.max), (5.0, 10.0));
        integrator.set(at(10), 4);
        assert_eq!(integrator.reset(at(10)).max, 10.0);
        assert_eq!(integrator.reset(at(12)).average, 4.0);
    }

    #[test]
    fn the_smoothed_demand_rises_at_once_and_halves_in_five_minutes() {
        let mut demand = Demand::default();
        let busy = Observed {
            elapsed: 10.0,
            average: 80.0,
            deviation: 20.0,
            max: 130.0,
        };
        demand.update(busy);
        assert_eq!((demand.smoothed, demand.high_watermark), (100.0, 130));
        let idle = Observed {
            elapsed: 10.0,
            ..Observed::default()
        };
        (0..30).for_each(|_| demand.update(idle));
        assert!((49.0..51.0).contains(&demand.smoothed), "{demand:?}");
        assert_eq!(demand.high_watermark, 0);
    }
}
