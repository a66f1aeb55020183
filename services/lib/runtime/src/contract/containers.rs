//! The life of containers and sandboxes, on every runtime.

use std::time::Duration;

use futures::StreamExt as _;
use setpoint_proto::core::ResourceRequirements;

use super::{ALL_OUTPUT, Fixture, container, id, pod, resources, sandbox, uid};
use crate::{Error, Runtime, State};

pub async fn a_container_without_a_command_runs_until_it_is_stopped<R: Runtime>(
    fixture: Fixture<R>,
) {
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

pub async fn the_exit_code_is_that_of_the_command<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (3, "Error"));
    assert!(exit.started <= exit.finished);
    fixture.start(1, &["true"]).await;
    assert_eq!(fixture.exited(1).await.reason(), "Completed");
    fixture.clean_up().await;
}

pub async fn an_exit_wakes_the_agent<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sleep", "0.05"]).await;
    assert_eq!(fixture.exited(0).await.code, 0);
    fixture.clean_up().await;
}

pub async fn a_container_that_runs_is_given_other_resources_and_one_that_has_ended_is_not<
    R: Runtime,
>(
    fixture: Fixture<R>,
) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let has = || fixture.container(0).unwrap().resources;
    assert_eq!(has(), Some(ResourceRequirements::default()));
    let more = resources(&[("cpu", "20m")], &[("cpu", "30m"), ("memory", "64Mi")]);
    fixture.runtime.resize(&id(0), &more).await.unwrap();
    assert_eq!(has(), Some(more.clone()));
    let state = fixture.container(0).unwrap().state;
    assert!(
        matches!(state, State::Running { stopping: None, .. }),
        "it runs on"
    );
    fixture.start(1, &["true"]).await;
    fixture.exited(1).await;
    let refused = fixture.runtime.resize(&id(1), &more).await.unwrap_err();
    assert!(matches!(refused, Error::NotRunning(_)), "{refused}");
    fixture.clean_up().await;
}

pub async fn starting_the_same_attempt_again_starts_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let before = fixture.container(0);
    fixture.start(0, &["true"]).await;
    assert_eq!(fixture.container(0), before);
    assert_eq!(fixture.runtime.sandboxes(&pod()).len(), 1);
    fixture.clean_up().await;
}

pub async fn stopping_an_exited_container_changes_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["sh", "-c", "exit 3"]).await;
    let exit = fixture.exited(0).await;
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    assert_eq!(fixture.exited(0).await, exit);
    fixture.clean_up().await;
}

pub async fn a_running_container_cannot_be_removed<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    assert!(fixture.runtime.remove(&id(0)).await.is_err());
    assert!(fixture.runtime.remove_sandbox(&uid()).await.is_err());
    fixture.running(0).await;
    fixture.clean_up().await;
}

pub async fn a_removed_sandbox_leaves_nothing<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    assert_eq!(fixture.runtime.pods(), [pod()]);
    for _ in 0..2 {
        fixture.runtime.remove_sandbox(&uid()).await.unwrap();
        assert!(fixture.runtime.pods().is_empty() && fixture.runtime.sandboxes(&pod()).is_empty());
    }
    fixture.clean_up().await;
}

pub async fn a_container_needs_its_sandbox<R: Runtime>(fixture: Fixture<R>) {
    assert!(fixture.runtime.start(container(0, &[])).await.is_err());
    assert!(fixture.runtime.sandboxes(&pod()).is_empty());
    fixture.clean_up().await;
}

pub async fn attempts_are_kept_apart<R: Runtime>(fixture: Fixture<R>) {
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

pub async fn a_container_that_does_not_run_runs_no_commands<R: Runtime>(fixture: Fixture<R>) {
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    let nothing = || futures::stream::empty().boxed();
    let runtime = &fixture.runtime;
    let command = ["true".to_owned()];
    let executed = runtime.exec(&id(0), &command, ALL_OUTPUT, nothing()).await;
    assert!(matches!(executed, Err(Error::NotRunning(_))));
    let attached = runtime.attach(&id(0), ALL_OUTPUT, nothing()).await;
    assert!(matches!(attached, Err(Error::NotRunning(_))));
    fixture.clean_up().await;
}
