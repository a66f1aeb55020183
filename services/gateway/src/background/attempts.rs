//! The attempts of a loop: each key that fails is tried again later and later.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::time::Duration;

use setpoint_proto::ApiError;
use setpoint_task::Backoff;
use tokio::time::{Instant, sleep, sleep_until};

/// The longest delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay after many failures.
const MAX_DELAY: Duration = Duration::from_secs(60);

fn backoff() -> Backoff {
    Backoff::new(FIRST_DELAY, MAX_DELAY)
}

/// The keys that have failed, and when each may be tried again.
#[derive(Default)]
pub(super) struct Attempts(HashMap<String, (Backoff, Instant)>);

impl Attempts {
    /// Returns whether a key may be tried.
    pub(super) fn may_try(&self, key: &str) -> bool {
        let failed = self.0.get(key);
        failed.is_none_or(|(_, due)| *due <= Instant::now())
    }

    /// Counts a failure, or forgets those before a success.
    pub(super) fn tried(&mut self, key: &str, succeeded: bool) {
        if succeeded {
            self.0.remove(key);
            return;
        }
        let new = || (backoff(), Instant::now());
        let (backoff, due) = self.0.entry(key.to_owned()).or_insert_with(new);
        *due = Instant::now() + backoff.next_delay();
    }

    /// Puts a key off that waits for others: it has not failed, so that it is tried again soon.
    pub(super) fn postpone(&mut self, key: &str) {
        let due = Instant::now() + FIRST_DELAY;
        self.0.insert(key.to_owned(), (backoff(), due));
    }

    /// Forgets all keys but these.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|key, _| is_kept(key));
    }

    /// Waits until a key that has failed may be tried again; for ever if none has.
    pub(super) async fn next_due(&self) {
        match self.0.values().map(|(_, due)| *due).min() {
            Some(due) => sleep_until(due).await,
            None => pending().await,
        }
    }
}

/// Runs a loop that ends with an error at some time, again and again. The delays grow unless it has lasted.
pub(super) async fn repeat<F>(task: &'static str, mut run: impl FnMut() -> F)
where
    F: Future<Output = Result<(), ApiError>>,
{
    let mut backoff = backoff();
    loop {
        let began = Instant::now();
        if let Err(error) = run().await {
            tracing::debug!(task, %error, "a background task failed; trying again");
        }
        if began.elapsed() >= MAX_DELAY {
            backoff.reset();
        }
        sleep(backoff.next_delay()).await;
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::Reason;

    use super::*;

    /// Checks DG4.
    #[tokio::test(start_paused = true)]
    async fn a_key_that_always_fails_is_tried_less_and_less_often() {
        let mut attempts = Attempts::default();
        let began = Instant::now();
        let mut tried = 0;
        while began.elapsed() < Duration::from_secs(3600) {
            assert!(attempts.may_try("other"));
            if attempts.may_try("a") {
                tried += 1;
                attempts.tried("a", false);
            }
            attempts.next_due().await;
        }
        assert!((60..150).contains(&tried), "{tried}");
        attempts.tried("a", true);
        assert!(attempts.may_try("a"));
    }

    /// Checks DG4.
    #[tokio::test(start_paused = true)]
    async fn a_loop_that_always_fails_is_begun_less_and_less_often() {
        let mut begun = 0;
        let refused = || {
            begun += 1;
            async { Err(ApiError::new(Reason::Forbidden, "no")) }
        };
        let hour = Duration::from_secs(3600);
        let ended = tokio::time::timeout(hour, repeat("test", refused)).await;
        assert!(ended.is_err());
        assert!((60..150).contains(&begun), "{begun}");
    }
}
