//! The seconds after which rejected clients may try again: they double while many are rejected, and fall again one by
//! one (upstream: `DroppedRequestsTracker`).

use std::collections::VecDeque;

const MOST: u64 = 32;

/// The seconds to wait, of one level.
#[derive(Clone, Debug)]
pub struct RetryAfter {
    seconds: u64,
    raised: Option<u64>,
    /// The current second, and the rejections in it.
    current: (u64, u64),
    /// The seconds before with rejections.
    history: VecDeque<(u64, u64)>,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self {
            seconds: 1,
            raised: None,
            current: (0, 0),
            history: VecDeque::new(),
        }
    }
}

impl RetryAfter {
    /// Counts a rejection at a second of any clock, and returns the seconds to wait.
    pub fn rejected(&mut self, second: u64) -> u64 {
        if self.current.0 == second {
            self.current.1 += 1;
            return self.seconds;
        }
        let kept = (2 * self.seconds).min(MOST);
        self.history.push_back(self.current);
        self.history
            .retain(|(at, _)| second.saturating_sub(*at) <= kept);
        self.current = (second, 1);
        self.update(second);
        self.seconds
    }

    fn update(&mut self, second: u64) {
        let recent = |at: u64| second.saturating_sub(at) <= self.seconds;
        let rejected = self.history.iter().filter(|(at, _)| recent(*at));
        let rejected: u64 = rejected.map(|(_, count)| count).sum();
        let may_rise = self
            .raised
            .is_none_or(|at| second.saturating_sub(at) >= self.seconds);
        if may_rise && rejected >= 3 * self.seconds {
            self.seconds = (2 * self.seconds).min(MOST);
            self.raised = Some(second);
        } else if rejected < self.seconds && self.seconds > 1 {
            self.seconds -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_under_load_and_falls_slowly() {
        let mut retry = RetryAfter::default();
        let mut waits = Vec::new();
        for second in 100..140 {
            waits.push(retry.rejected(second));
            for _ in 0..99 {
                retry.rejected(second);
            }
        }
        waits.dedup();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32]);
        let falling: Vec<_> = (0..3).map(|n| retry.rejected(1000 + 100 * n)).collect();
        assert_eq!(falling, [31, 30, 29]);
        assert!(retry.history.len() <= 33);
    }

    #[test]
    fn few_rejections_change_nothing() {
        let mut retry = RetryAfter::default();
        assert!((0..100).all(|second| retry.rejected(second) == 1));
    }
}
