//! The contract of the [`Runtime`] trait, checked on every implementation.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::time::Duration;

use setpoint_node_agent::runtime::{LogOptions, Runtime, State};
use support::{Fixture, container, id, pod, sandbox, uid};

macro_rules! on_every_runtime {
    ($($(#[$doc:meta])* $name:ident)*) => {
        mod process {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(super::support::process()).await; })*
        }
        mod docker {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                if let Some(fixture) = super::support::docker::fixture().await {
                    super::$name(fixture).await;
                }
            })*
        }
        mod simulated {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(super::support::simulated()).await; })*
        }
    };
}
/// Simulated containers write no logs.
macro_rules! on_every_runtime_that_runs {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test] async fn process() { super::$name(super::support::process()).await; }
            #[tokio::test] async fn docker() {
                if let Some(fixture) = super::support::docker::fixture().await {
                    super::$name(fixture).await;
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
    a_container_without_a_command_runs_until_it_is_stopped
    the_exit_code_is_that_of_the_command
    an_exit_wakes_the_agent
    starting_the_same_attempt_again_starts_nothing
    stopping_an_exited_container_changes_nothing
    a_running_container_cannot_be_removed
    a_removed_sandbox_leaves_nothing
    a_container_needs_its_sandbox
    attempts_are_kept_apart
}

async fn a_container_without_a_command_runs_until_it_is_stopped<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    fixture
        .runtime
        .stop(&id(0), Duration::from_secs(10))
        .await
        .unwrap();
    fixture.exited(0).await;
    fixture.clean_up().await;
}

async fn the_exit_code_is_that_of_the_command<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (3, "Error"));
    assert!(exit.started <= exit.finished);
    fixture.start(1, &["true"]).await;
    assert_eq!(fixture.exited(1).await.reason(), "Completed");
    fixture.clean_up().await;
}

async fn an_exit_wakes_the_agent<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "0.05"]).await;
    assert_eq!(fixture.exited(0).await.code, 0);
    fixture.clean_up().await;
}

async fn starting_the_same_attempt_again_starts_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let before = fixture.container(0);
    fixture.start(0, &["true"]).await;
    assert_eq!(fixture.container(0), before);
    assert_eq!(fixture.runtime.sandboxes(&pod()).len(), 1);
    fixture.clean_up().await;
}

async fn stopping_an_exited_container_changes_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = fixture.exited(0).await;
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    assert_eq!(fixture.exited(0).await, exit);
    fixture.clean_up().await;
}

async fn a_running_container_cannot_be_removed<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    assert!(fixture.runtime.remove(&id(0)).await.is_err());
    assert!(fixture.runtime.remove_sandbox(&uid()).await.is_err());
    fixture.running(0).await;
    fixture.clean_up().await;
}

async fn a_removed_sandbox_leaves_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    assert_eq!(fixture.runtime.pods(), [pod()]);
    for _ in 0..2 {
        fixture.runtime.remove_sandbox(&uid()).await.unwrap();
        assert!(fixture.runtime.pods().is_empty() && fixture.runtime.sandboxes(&pod()).is_empty());
    }
    fixture.clean_up().await;
}

async fn a_container_needs_its_sandbox<R: Runtime>(fixture: Fixture<R>) {
    assert!(fixture.runtime.start(container(0, &[])).await.is_err());
    assert!(fixture.runtime.sandboxes(&pod()).is_empty());
    fixture.clean_up().await;
}

async fn attempts_are_kept_apart<R: Runtime>(fixture: Fixture<R>) {
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    for attempt in [0, 1] {
        fixture.start(attempt, &["true"]).await;
        fixture.exited(attempt).await;
    }
    fixture.start(2, &[]).await;
    fixture.running(2).await;
    fixture.runtime.remove(&id(0)).await.unwrap();
    let sandboxes = fixture.runtime.sandboxes(&pod());
    let attempts: Vec<_> = sandboxes[0]
        .attempts("main")
        .map(|found| found.id.attempt)
        .collect();
    assert_eq!(attempts, [1, 2]);
    assert!(matches!(
        sandboxes[0].latest("main").unwrap().state,
        State::Running { .. }
    ));
    fixture.clean_up().await;
}

async fn a_log_is_kept_after_the_end_and_read_from_its_tail<R: Runtime>(fixture: Fixture<R>) {
    fixture
        .start(0, &["sh", "-c", "echo one; echo two; echo three"])
        .await;
    fixture.exited(0).await;
    assert_eq!(
        fixture.log(0, LogOptions::default()).await,
        "one\ntwo\nthree\n"
    );
    let tail = LogOptions {
        tail: Some(2),
        ..LogOptions::default()
    };
    assert_eq!(fixture.log(0, tail).await, "two\nthree\n");
    fixture.clean_up().await;
}

async fn a_log_that_is_followed_ends_with_its_container<R: Runtime>(fixture: Fixture<R>) {
    fixture
        .start(0, &["sh", "-c", "echo one; sleep 1; echo two"])
        .await;
    // It may have ended before the first look.
    let begun = |state: &State| (*state != State::Starting).then_some(());
    fixture.wait_for(0, begun).await;
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    assert_eq!(fixture.log(0, follow).await, "one\ntwo\n");
    fixture.clean_up().await;
}
