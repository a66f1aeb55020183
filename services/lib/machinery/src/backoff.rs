//! How long to wait before the next try: longer each time, and never in step with others.

use std::time::Duration;

/// Delays of `base`·2ⁿ up to `cap`, each shortened by up to half at random so that a crowd spreads out.
#[derive(Clone, Debug)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    failures: u32,
}

impl Backoff {
    /// The first delay is at most `base`, none is above `cap`.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self {
            base,
            cap,
            failures: 0,
        }
    }

    /// How long to wait after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let longest = doubled(self.base, self.failures, self.cap);
        self.failures = self.failures.saturating_add(1);
        longest.mul_f64(rand::random_range(0.5..1.0))
    }

    /// It works again: begin anew with `base`.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

/// `base`·2ⁿ, at most `cap`.
pub(crate) fn doubled(base: Duration, times: u32, cap: Duration) -> Duration {
    let factor = 1_u32.checked_shl(times).unwrap_or(u32::MAX);
    base.saturating_mul(factor).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_begin_anew_after_a_reset() {
        let (base, cap) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(base, cap);
        for n in 0..100 {
            let longest = doubled(base, n, cap);
            let delay = backoff.next_delay();
            assert!(delay >= longest / 2 && delay <= longest, "{n}: {delay:?}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= base);
    }
}
