//! Panics as errors.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;

use futures::FutureExt as _;
use prometheus::{IntCounterVec, register_int_counter_vec};

/// A panic in a unit of work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task} panicked: {message}")]
pub struct Panicked {
    task: &'static str,
    message: String,
}

impl Panicked {
    /// Logs and counts a panic of `task`, in `setpoint_panics_total{task}`.
    ///
    /// `payload` is that of `catch_unwind` or of a task's `JoinError`.
    pub fn record(task: &'static str, payload: &(dyn Any + Send)) -> Self {
        let message = message(payload).to_owned();
        tracing::error!(task, message, "panicked");
        counter().with_label_values(&[task]).inc();
        Self { task, message }
    }
}

/// Runs `future`. A panic in it becomes an error, and is logged and counted in `setpoint_panics_total{task}`.
///
/// A panic may poison locks and leave state inconsistent. `future` should own the state that it changes, or change it
/// in one step.
///
/// # Errors
/// [`Panicked`] if `future` panicked.
// An `async fn` would have room for `future` twice: as its argument, and as what it awaits.
pub fn catch_panic<T>(
    task: &'static str,
    future: impl Future<Output = T>,
) -> impl Future<Output = Result<T, Panicked>> {
    let ended = AssertUnwindSafe(future).catch_unwind();
    ended.map(move |ended| ended.map_err(|payload| Panicked::record(task, &*payload)))
}

/// Calls `work`. A panic in it becomes an error, as in [`catch_panic`].
///
/// # Errors
/// [`Panicked`] if `work` panicked.
pub fn catch_unwind<T>(task: &'static str, work: impl FnOnce() -> T) -> Result<T, Panicked> {
    let ended = std::panic::catch_unwind(AssertUnwindSafe(work));
    ended.map_err(|payload| Panicked::record(task, &*payload))
}

/// Returns the message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn counter() -> &'static IntCounterVec {
    static PANICS: LazyLock<IntCounterVec> = LazyLock::new(|| {
        let help = "Panics that were caught, by task or server.";
        register_int_counter_vec!("setpoint_panics_total", help, &["task"])
            .expect("metric names are unique")
    });
    &PANICS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_with_its_message_and_is_counted() {
        let counted = || counter().with_label_values(&["panic-test"]).get();
        let failed: Result<(), _> = catch_panic("panic-test", async { panic!("at {}", 7) }).await;
        assert_eq!(failed.unwrap_err().to_string(), "panic-test panicked: at 7");
        assert_eq!(counted(), 1);
        assert_eq!(catch_panic("panic-test", async { 7 }).await, Ok(7));
        assert_eq!(counted(), 1);
        assert!(catch_unwind("panic-test", || panic!("now")).is_err());
        assert_eq!(catch_unwind("panic-test", || 7), Ok(7));
        assert_eq!(counted(), 2);
    }
}
