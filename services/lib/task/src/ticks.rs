//! Common wake-up times, so that periodic tasks of a process wake together.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the first multiple of `period` since a time that all tasks of the process share, at or after `at`. Many
/// tasks that wake at once wake the process, and those that it talks to, as often as one.
pub fn next_tick(at: Instant, period: Duration) -> Instant {
    let since = at.saturating_duration_since(*EPOCH).as_nanos();
    let passed = since.checked_rem(period.as_nanos()).unwrap_or_default();
    match u64::try_from(passed) {
        Ok(passed) if passed > 0 => at + period.saturating_sub(Duration::from_nanos(passed)),
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tasks_that_began_at_different_times_wake_together() {
        let period = Duration::from_secs(2);
        let at = |ms| *EPOCH + Duration::from_millis(ms);
        for (now, next) in [(0, 0), (1, 2_000), (1_999, 2_000), (2_000, 2_000)] {
            assert_eq!(next_tick(at(now), period), at(next), "{now}");
        }
        assert_eq!(next_tick(at(1), Duration::ZERO), at(1));
    }
}
