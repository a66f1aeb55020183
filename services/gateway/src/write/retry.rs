//! Retries of a write after conflicts.

use std::time::Duration;

use setpoint_proto::{ApiError, Reason};
use setpoint_task::Backoff;
use tokio::time::{Instant, sleep};

/// The time after which a write is no longer retried. Clients time out by then, too.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
/// The bounds of the delay between attempts: the time of one transaction, and of many concurrent ones.
const FIRST_DELAY: Duration = Duration::from_millis(2);
const MAX_DELAY: Duration = Duration::from_millis(100);

/// The attempts of one write.
pub(crate) struct Retry {
    deadline: Instant,
    backoff: Backoff,
}

impl Retry {
    pub(crate) fn begin() -> Self {
        Self {
            deadline: Instant::now() + RETRY_TIMEOUT,
            backoff: Backoff::new(FIRST_DELAY, MAX_DELAY),
        }
    }

    /// Waits until the next attempt. The delay is random, so that conflicting writers do not conflict again.
    ///
    /// # Errors
    /// `Timeout` after half a minute of attempts.
    pub(crate) async fn wait(&mut self) -> Result<(), ApiError> {
        if Instant::now() >= self.deadline {
            let message = "Timeout: request did not complete within requested timeout - too many conflicting writes to the object";
            return Err(ApiError::new(Reason::Timeout, message));
        }
        // Boxed, since a timer would make the future of every write large.
        Box::pin(sleep(self.backoff.next_delay())).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks I10.
    #[tokio::test(start_paused = true)]
    async fn retries_end_with_the_timeout_of_the_request() {
        let (mut retry, began) = (Retry::begin(), Instant::now());
        let mut attempts = 0_u32;
        let error = loop {
            match retry.wait().await {
                Ok(()) => attempts += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.reason, Reason::Timeout);
        assert!(attempts > 100, "{attempts}");
        assert!(began.elapsed() <= RETRY_TIMEOUT + MAX_DELAY);
    }
}
