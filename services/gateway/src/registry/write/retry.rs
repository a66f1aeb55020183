//! Attempts at a write that others overtake.

use std::time::Duration;

use setpoint_proto::{ApiError, Reason};
use setpoint_task::Backoff;
use tokio::time::{Instant, sleep};

/// A write that is still being overtaken after this long has had its time: clients give up by then, too.
const PATIENCE: Duration = Duration::from_secs(30);
/// Delays between attempts: about the time that a transaction takes, and that of a crowd.
const FIRST_DELAY: Duration = Duration::from_millis(2);
const LONGEST_DELAY: Duration = Duration::from_millis(100);

/// The attempts of one write.
pub(crate) struct Retry {
    deadline: Instant,
    backoff: Backoff,
}

impl Retry {
    pub(crate) fn begin() -> Self {
        Self {
            deadline: Instant::now() + PATIENCE,
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY),
        }
    }

    /// Waits until the next attempt, a random while so that writers that met do not meet again.
    ///
    /// # Errors
    /// `Timeout` once there have been attempts for half a minute.
    pub(crate) async fn again(&mut self) -> Result<(), ApiError> {
        if Instant::now() >= self.deadline {
            let message = "Timeout: request did not complete within requested timeout - others wrote to the object all the time";
            return Err(ApiError::new(Reason::Timeout, message));
        }
        sleep(self.backoff.next_delay()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks I10.
    #[tokio::test(start_paused = true)]
    async fn attempts_end_with_the_time_of_the_request() {
        let (mut retry, began) = (Retry::begin(), Instant::now());
        let mut attempts = 0_u32;
        let error = loop {
            match retry.again().await {
                Ok(()) => attempts += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.reason, Reason::Timeout);
        assert!(attempts > 100, "{attempts}");
        assert!(began.elapsed() <= PATIENCE + LONGEST_DELAY);
    }
}
