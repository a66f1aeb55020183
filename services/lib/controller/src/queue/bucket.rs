//! A token bucket: so many at once, so many per second after that.

use std::time::Duration;

use tokio::time::Instant;

/// Hands out tokens, also future ones: the caller waits for as long as it is told.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    burst: f64,
    /// Below zero, that many tokens are promised already.
    tokens: f64,
    filled: Option<Instant>,
}

impl Bucket {
    pub(crate) const fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            tokens: burst,
            filled: None,
        }
    }

    /// Upstream's overall limit on retries, whatever their keys.
    pub(super) const fn for_retries() -> Self {
        Self::new(10.0, 100.0)
    }

    /// Takes a token; says how long to wait for it.
    pub(crate) fn reserve(&mut self, now: Instant) -> Duration {
        self.fill(now);
        self.tokens -= 1.0;
        Duration::from_secs_f64((-self.tokens).max(0.0) / self.per_second)
    }

    fn fill(&mut self, now: Instant) {
        let passed = now - self.filled.replace(now).unwrap_or(now);
        self.tokens = (self.tokens + passed.as_secs_f64() * self.per_second).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_the_rest_is_paced() {
        let mut bucket = Bucket::for_retries();
        let now = Instant::now();
        assert!((0..100).all(|_| bucket.reserve(now).is_zero()));
        assert_eq!(bucket.reserve(now), Duration::from_millis(100));
        assert_eq!(bucket.reserve(now), Duration::from_millis(200));
        let later = now + Duration::from_secs(60);
        assert!((0..100).all(|_| bucket.reserve(later).is_zero()));
        assert!(!bucket.reserve(later).is_zero());
    }
}
