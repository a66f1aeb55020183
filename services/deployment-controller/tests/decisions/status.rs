//! What the user is told about a rollout.

use std::time::Duration;

use crate::cluster::Cluster;
use setpoint_controller::Outcome;
use setpoint_deployment_controller::{Action, status};
use setpoint_proto::apps::ReplicaSetCondition;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING, Reason};

fn failed(cluster: &Cluster) -> Outcome<Action> {
    failed_with(cluster, ApiError::new(Reason::Forbidden, "exceeded quota"))
}

fn failed_with(cluster: &Cluster, error: ApiError) -> Outcome<Action> {
    Outcome {
        failed: Some(error),
        ..cluster.planned()
    }
}

#[test]
fn a_rollout_is_told_from_its_first_set_to_its_last_pod() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetCreated"))
    );
    assert_eq!(
        cluster.condition("Available"),
        Some(("False", "MinimumReplicasUnavailable"))
    );
    cluster.follow(0);
    cluster.start(0);
    cluster.tell(0);
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "ReplicaSetUpdated"))
    );
    let status = &cluster.deployment.status;
    assert_eq!(
        (
            status.replicas,
            status.updated_replicas,
            status.unavailable_replicas
        ),
        (2, 2, 1)
    );
    assert_eq!((status.ready_replicas, status.available_replicas), (1, 1));
    cluster.settle();
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetAvailable"))
    );
    assert_eq!(
        cluster.condition("Available"),
        Some(("True", "MinimumReplicasAvailable"))
    );
    let name = cluster.sets.keys().next().unwrap();
    let message = &cluster
        .deployment
        .status
        .conditions
        .iter()
        .find(|c| c.r#type == "Progressing")
        .unwrap()
        .message;
    assert_eq!(
        *message,
        format!("ReplicaSet {name:?} has successfully progressed.")
    );
}

#[test]
fn nothing_is_said_twice() {
    let cluster = Cluster::settled(3, 1, 0);
    assert_eq!(status(&cluster.world(), &cluster.planned()), None);
}

#[test]
fn a_pod_lost_after_the_rollout_does_not_reopen_it() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.sets.values_mut().next().unwrap().available = 1;
    cluster.tell(0);
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("Available"),
        Some(("False", "MinimumReplicasUnavailable"))
    );
    cluster.start(0);
    cluster.tell(0);
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetAvailable"))
    );
}

/// Checks D8.
#[test]
fn every_step_forward_starts_the_clock_anew() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.round(usize::MAX);
    cluster.follow_all();
    for _ in 0..2 {
        cluster.now += 500;
        cluster.start(0);
        cluster.tell(0);
        cluster.round(usize::MAX);
        assert_eq!(cluster.plan().again, Some(Duration::from_secs(600)));
    }
}

/// Checks D8: the time of the last transition is that of the status alone.
#[test]
fn a_condition_keeps_its_transition_while_its_status_stays() {
    let mut cluster = Cluster::new(2, 1, 0);
    let transition = |cluster: &Cluster| {
        let conditions = cluster.deployment.status.conditions.iter();
        let mut progress = conditions.filter(|one| one.r#type == "Progressing");
        let time = progress.next().unwrap().last_transition_time;
        time.timestamp().unwrap().as_second()
    };
    cluster.round(usize::MAX);
    cluster.now += 100;
    cluster.follow_all();
    cluster.start(0);
    cluster.tell(0);
    cluster.round(usize::MAX);
    let updated = Some(("True", "ReplicaSetUpdated"));
    assert_eq!(cluster.condition("Progressing"), updated);
    assert_eq!(transition(&cluster), 1_000);
    cluster.now += 600;
    cluster.round(usize::MAX);
    let late = Some(("False", "ProgressDeadlineExceeded"));
    assert_eq!(cluster.condition("Progressing"), late);
    assert_eq!(transition(&cluster), 1_700);
}

/// Checks D2: sets without Pods keep the size that they were last scaled for.
#[test]
fn a_rollout_after_a_change_of_size_is_told_to_its_end() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.set_image("second");
    cluster.settle();
    cluster.edit(|spec| spec.replicas = Some(5));
    cluster.settle();
    cluster.set_image("third");
    cluster.round(usize::MAX);
    let created = Some(("True", "NewReplicaSetCreated"));
    assert_eq!(cluster.condition("Progressing"), created);
    cluster.settle();
    let done = Some(("True", "NewReplicaSetAvailable"));
    assert_eq!(cluster.condition("Progressing"), done);
}

/// Checks D8.
#[test]
fn a_rollout_without_progress_is_late_after_its_deadline() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.set_image("broken");
    cluster.round(usize::MAX);
    cluster.now += 400;
    assert_eq!(cluster.plan().again, Some(Duration::from_secs(200)));
    cluster.follow_all();
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "ReplicaSetUpdated"))
    );
    cluster.now += 599;
    assert!(!cluster.report(&cluster.world(), &cluster.planned()));
    cluster.now += 1;
    assert!(cluster.report(&cluster.world(), &cluster.planned()));
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("False", "ProgressDeadlineExceeded"))
    );
    assert_eq!(cluster.plan().again, None);
}

/// Checks D8.
#[test]
fn the_clock_stands_still_while_paused_and_starts_anew_after() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.round(usize::MAX);
    cluster.edit(|spec| spec.paused = true);
    cluster.round(usize::MAX);
    cluster.now += 10_000;
    assert_eq!(cluster.plan().again, None);
    assert!(!cluster.report(&cluster.world(), &cluster.planned()));
    cluster.edit(|spec| spec.paused = false);
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("Unknown", "DeploymentResumed"))
    );
    assert_eq!(cluster.plan().again, Some(Duration::from_secs(600)));
}

#[test]
fn without_a_deadline_nothing_is_said_about_progress() {
    let mut cluster = Cluster::settled(1, 1, 0);
    cluster.edit(|spec| spec.progress_deadline_seconds = None);
    cluster.settle();
    assert_eq!(cluster.condition("Progressing"), None);
}

#[test]
fn a_set_that_cannot_be_created_or_filled_is_told_of() {
    let mut cluster = Cluster::new(1, 1, 0);
    cluster.report(&cluster.world(), &failed(&cluster));
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("False", "ReplicaSetCreateError"))
    );
    assert_eq!(cluster.deployment.status.observed_generation, 0);
    cluster.settle();
    let set = &mut cluster.sets.values_mut().next().unwrap().set;
    set.status.conditions.push(ReplicaSetCondition {
        r#type: "ReplicaFailure".into(),
        status: "True".into(),
        reason: "FailedCreate".into(),
        ..Default::default()
    });
    cluster.round(usize::MAX);
    assert_eq!(
        cluster.condition("ReplicaFailure"),
        Some(("True", "FailedCreate"))
    );
    cluster
        .sets
        .values_mut()
        .next()
        .unwrap()
        .set
        .status
        .conditions
        .clear();
    cluster.settle();
    assert_eq!(cluster.condition("ReplicaFailure"), None);
}

#[test]
fn without_a_new_set_the_deployment_itself_is_the_subject() {
    let mut cluster = Cluster::settled(2, 1, 0);
    cluster.edit(|spec| spec.strategy.r#type = "Recreate".into());
    cluster.set_image("next");
    cluster.round(usize::MAX);
    cluster.follow_in_part(0, 1);
    cluster.tell(0);
    cluster.round(usize::MAX);
    let conditions = cluster.deployment.status.conditions.iter();
    let messages: Vec<_> = conditions.map(|condition| &*condition.message).collect();
    assert!(
        messages.contains(&r#"Deployment "web" is progressing."#),
        "{messages:?}"
    );
}

/// Checks F34, K9: what another name settles, and what the end of the namespace settles, is no failure of the rollout.
#[test]
fn a_collision_and_an_ending_namespace_are_no_failure_to_create() {
    let cause = StatusCause {
        reason: NAMESPACE_TERMINATING.into(),
        ..Default::default()
    };
    let details = StatusDetails {
        causes: vec![cause],
        ..Default::default()
    };
    let ending = ApiError::new(Reason::Forbidden, "it is being terminated").with_details(details);
    let overtaken = [Reason::AlreadyExists, Reason::Conflict];
    let overtaken = overtaken.map(|reason| ApiError::new(reason, "overtaken"));
    for error in overtaken.into_iter().chain([ending]) {
        let mut cluster = Cluster::new(1, 1, 0);
        cluster.report(&cluster.world(), &failed_with(&cluster, error));
        assert_eq!(cluster.condition("Progressing"), None);
        assert_eq!(cluster.deployment.status.observed_generation, 0);
    }
    for reason in [Reason::Timeout, Reason::Invalid, Reason::InternalError] {
        let mut cluster = Cluster::new(1, 1, 0);
        cluster.report(
            &cluster.world(),
            &failed_with(&cluster, ApiError::new(reason, "no")),
        );
        let told = ("False", "ReplicaSetCreateError");
        assert_eq!(cluster.condition("Progressing"), Some(told));
    }
}

/// Checks D14.
#[test]
fn pods_on_their_way_out_are_counted_apart() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.edit(|spec| spec.replicas = Some(1));
    cluster.round(usize::MAX);
    cluster.follow(0);
    cluster.tell(0);
    cluster.round(usize::MAX);
    assert_eq!(cluster.deployment.status.terminating_replicas, Some(2));
    assert_eq!(cluster.deployment.status.replicas, 1);
}
