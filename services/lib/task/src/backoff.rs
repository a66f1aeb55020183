//! Exponential backoff with jitter.

use std::time::Duration;

/// Delays of `base`·2ⁿ, at most `cap`, each reduced at random by up to half.
#[derive(Clone, Debug)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    failures: u32,
}

impl Backoff {
    /// Returns a sequence that starts with a delay of at most `base`.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self {
            base,
            cap,
            failures: 0,
        }
    }

    /// Counts a failure and returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let longest = exponential(self.base, self.failures, self.cap);
        self.failures = self.failures.saturating_add(1);
        longest.mul_f64(rand::random_range(0.5..1.0))
    }

    /// Restarts the sequence, after a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Returns `base`·2ⁿ for `n` failures, at most `cap`.
pub fn exponential(base: Duration, failures: u32, cap: Duration) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    base.saturating_mul(factor).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_restart_after_a_reset() {
        let (base, cap) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(base, cap);
        for n in 0..100 {
            let longest = exponential(base, n, cap);
            let delay = backoff.next_delay();
            assert!(delay >= longest / 2 && delay <= longest, "{n}: {delay:?}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= base);
    }
}
