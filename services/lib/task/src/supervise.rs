//! Restarts tasks after panics.

use std::mem::take;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::{Backoff, catch_panic, catch_unwind};

/// The maximum delays before the first restart and before later ones.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// After a run of this length the task counts as recovered, and delays restart from the first.
const STEADY: Duration = Duration::from_secs(60);
/// The number of panics without such a run in between after which the task is reported as failing.
const FAILING: u32 = 3;
/// The environment variable that makes the first run of each task panic, in debug builds.
const PANIC_ONCE: &str = "SETPOINT_PANIC_ONCE";

/// Runs the future that `start` returns to its end. After a panic, calls `start` again, with a delay that grows from
/// 0.1 s to 30 s and restarts from 0.1 s after a run of a minute.
///
/// `report` is called with `Ok` at the start and when a failing task has run for a minute, and with the reason after
/// three panics in a row. Most callers report it as readiness. Each panic is logged and counted in
/// `setpoint_panics_total{task}`.
///
/// In debug builds, the first run of each task panics if the environment variable `SETPOINT_PANIC_ONCE` is set, so that
/// a test of a cluster covers the restart of every task.
///
/// Dropping the returned future drops the task.
pub async fn supervise<T, F>(
    task: &'static str,
    report: impl Fn(Result<(), String>),
    mut start: impl FnMut() -> F,
) -> T
where
    F: Future<Output = T>,
{
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    let mut panics = 0_u32;
    let mut panics_once = cfg!(debug_assertions) && std::env::var_os(PANIC_ONCE).is_some();
    report(Ok(()));
    loop {
        let ended = match take(&mut panics_once) {
            true => catch_unwind(task, || panic!("{PANIC_ONCE} is set")),
            false => {
                let mut run = pin!(catch_panic(task, start()));
                match timeout(STEADY, &mut run).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        if panics >= FAILING {
                            report(Ok(()));
                        }
                        panics = 0;
                        backoff.reset();
                        run.await
                    }
                }
            }
        };
        let panicked = match ended {
            Ok(value) => return value,
            Err(panicked) => panicked,
        };
        panics = panics.saturating_add(1);
        if panics >= FAILING {
            report(Err(format!("{panicked}, {panics} times in a row")));
        }
        sleep(backoff.next_delay()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_restarted_until_it_returns() {
        let runs = Cell::new(0);
        let start = || {
            runs.set(runs.get() + 1);
            let run = runs.get();
            async move {
                assert!(run > 2, "run {run}");
                run
            }
        };
        assert_eq!(supervise("restart-test", |_| {}, start).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_reported_after_three_panics_and_again_when_it_has_recovered() {
        let (runs, reports) = (Cell::new(0), RefCell::new(Vec::new()));
        let start = || {
            runs.set(runs.get() + 1);
            let run = runs.get();
            async move {
                assert!(run > 3, "run {run}");
                sleep(STEADY * 2).await;
            }
        };
        supervise(
            "report-test",
            |state| reports.borrow_mut().push(state),
            start,
        )
        .await;
        let reason = "report-test panicked: run 3, 3 times in a row".to_owned();
        assert_eq!(reports.into_inner(), [Ok(()), Err(reason), Ok(())]);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_grow_and_restart_after_a_run_of_a_minute() {
        let began = tokio::time::Instant::now();
        let starts = RefCell::new(Vec::new());
        let start = || {
            starts.borrow_mut().push(began.elapsed());
            let runs = starts.borrow().len();
            async move {
                if runs == 12 {
                    sleep(STEADY * 2).await;
                }
                assert!(runs > 12, "run {runs}");
            }
        };
        supervise("delay-test", |_| {}, start).await;
        let starts = starts.into_inner();
        let delay = |run: usize| starts[run] - starts[run - 1];
        assert!(delay(1) <= FIRST_DELAY && delay(11) >= LONGEST_DELAY / 2);
        assert!(delay(12) <= STEADY * 2 + FIRST_DELAY);
    }
}
