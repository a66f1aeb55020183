//! A clock that stands still while its process is suspended.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A monotonic clock that advances by at most `step` between two readings, so that the time in which its process could
/// not look at anything does not pass. Something must read it more often than that.
#[derive(Debug)]
pub struct AwakeClock {
    step: Duration,
    last: Mutex<Reading>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Option<Instant>,
    time: Duration,
}

impl AwakeClock {
    /// Returns a clock at zero.
    pub const fn new(step: Duration) -> Self {
        let time = Duration::ZERO;
        Self {
            step,
            last: Mutex::new(Reading { at: None, time }),
        }
    }

    /// Returns the time. An instant before the last one counts as that.
    pub fn read(&self, at: Instant) -> Duration {
        let mut last = self.last.lock();
        let passed = last.at.map(|last| at.saturating_duration_since(last));
        last.time += passed.unwrap_or_default().min(self.step);
        last.at = last.at.max(Some(at));
        last.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_nobody_reads_it_does_not_pass() {
        let (clock, start) = (AwakeClock::new(Duration::from_secs(10)), Instant::now());
        let seconds = |at| clock.read(start + Duration::from_secs(at)).as_secs();
        assert_eq!(seconds(0), 0);
        assert_eq!(seconds(5), 5);
        assert_eq!(seconds(400), 15, "suspended");
        assert_eq!(seconds(399), 15);
        assert_eq!(seconds(403), 18);
    }
}
