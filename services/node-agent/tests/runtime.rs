//! What every runtime promises, checked on each of them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::time::Duration;

use setpoint_node_agent::runtime::{LogOptions, Runtime, State};
use support::{Bench, container, id, pod, sandbox, uid};

macro_rules! on_every_runtime {
    ($($(#[$doc:meta])* $name:ident)*) => {
        mod process {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(super::support::process()).await; })*
        }
        mod docker {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                if let Some(bench) = super::support::docker::bench().await {
                    super::$name(bench).await;
                }
            })*
        }
        mod simulated {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(super::support::simulated()).await; })*
        }
    };
}
/// Pretended containers write nothing.
macro_rules! on_every_runtime_that_runs {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test] async fn process() { super::$name(super::support::process()).await; }
            #[tokio::test] async fn docker() {
                if let Some(bench) = super::support::docker::bench().await {
                    super::$name(bench).await;
                }
            }
        })*
    };
}
on_every_runtime_that_runs! {
    a_log_is_kept_after_the_end_and_read_from_its_tail
    a_log_that_is_followed_ends_with_its_container
}
on_every_runtime! {
    a_container_that_is_not_told_to_end_runs_until_it_is_stopped
    the_exit_code_is_that_of_the_command
    an_exit_is_told_without_being_asked_for
    starting_the_same_attempt_again_starts_nothing
    stopping_what_has_stopped_changes_nothing
    a_running_container_cannot_be_removed
    a_removed_sandbox_leaves_nothing
    a_container_needs_its_sandbox
    attempts_are_kept_apart
}

async fn a_container_that_is_not_told_to_end_runs_until_it_is_stopped<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &[]).await;
    bench.running(0).await;
    bench
        .runtime
        .stop(&id(0), Duration::from_secs(10))
        .await
        .unwrap();
    bench.exited(0).await;
    bench.clean_up().await;
}

async fn the_exit_code_is_that_of_the_command<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (3, "Error"));
    assert!(exit.started <= exit.finished);
    bench.start(1, &["true"]).await;
    assert_eq!(bench.exited(1).await.reason(), "Completed");
    bench.clean_up().await;
}

async fn an_exit_is_told_without_being_asked_for<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &["sleep", "0.05"]).await;
    assert_eq!(bench.exited(0).await.code, 0);
    bench.clean_up().await;
}

async fn starting_the_same_attempt_again_starts_nothing<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &[]).await;
    bench.running(0).await;
    let before = bench.container(0);
    bench.start(0, &["true"]).await;
    assert_eq!(bench.container(0), before);
    assert_eq!(bench.runtime.sandboxes(&pod()).len(), 1);
    bench.clean_up().await;
}

async fn stopping_what_has_stopped_changes_nothing<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = bench.exited(0).await;
    bench.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    assert_eq!(bench.exited(0).await, exit);
    bench.clean_up().await;
}

async fn a_running_container_cannot_be_removed<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &[]).await;
    bench.running(0).await;
    assert!(bench.runtime.remove(&id(0)).await.is_err());
    assert!(bench.runtime.remove_sandbox(&uid()).await.is_err());
    bench.running(0).await;
    bench.clean_up().await;
}

async fn a_removed_sandbox_leaves_nothing<R: Runtime>(bench: Bench<R>) {
    bench.start(0, &["true"]).await;
    bench.exited(0).await;
    assert_eq!(bench.runtime.pods(), [pod()]);
    for _ in 0..2 {
        bench.runtime.remove_sandbox(&uid()).await.unwrap();
        assert!(bench.runtime.pods().is_empty() && bench.runtime.sandboxes(&pod()).is_empty());
    }
    bench.clean_up().await;
}

async fn a_container_needs_its_sandbox<R: Runtime>(bench: Bench<R>) {
    assert!(bench.runtime.start(container(0, &[])).await.is_err());
    assert!(bench.runtime.sandboxes(&pod()).is_empty());
    bench.clean_up().await;
}

async fn attempts_are_kept_apart<R: Runtime>(bench: Bench<R>) {
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    for attempt in [0, 1] {
        bench.start(attempt, &["true"]).await;
        bench.exited(attempt).await;
    }
    bench.start(2, &[]).await;
    bench.running(2).await;
    bench.runtime.remove(&id(0)).await.unwrap();
    let sandboxes = bench.runtime.sandboxes(&pod());
    let attempts: Vec<_> = sandboxes[0]
        .attempts("main")
        .map(|found| found.id.attempt)
        .collect();
    assert_eq!(attempts, [1, 2]);
    assert!(matches!(
        sandboxes[0].latest("main").unwrap().state,
        State::Running { .. }
    ));
    bench.clean_up().await;
}

async fn a_log_is_kept_after_the_end_and_read_from_its_tail<R: Runtime>(bench: Bench<R>) {
    bench
        .start(0, &["sh", "-c", "echo one; echo two; echo three"])
        .await;
    bench.exited(0).await;
    assert_eq!(
        bench.log(0, LogOptions::default()).await,
        "one\ntwo\nthree\n"
    );
    let tail = LogOptions {
        tail: Some(2),
        ..LogOptions::default()
    };
    assert_eq!(bench.log(0, tail).await, "two\nthree\n");
    bench.clean_up().await;
}

async fn a_log_that_is_followed_ends_with_its_container<R: Runtime>(bench: Bench<R>) {
    bench
        .start(0, &["sh", "-c", "echo one; sleep 1; echo two"])
        .await;
    // It may have ended before anybody looks.
    let begun = |state: &State| (*state != State::Starting).then_some(());
    bench.until(0, begun).await;
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    assert_eq!(bench.log(0, follow).await, "one\ntwo\n");
    bench.clean_up().await;
}
