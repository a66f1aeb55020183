//! Tests of the status of a Deployment.

use std::time::Duration;

use crate::decisions::cluster::Cluster;
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
fn conditions_and_counts_follow_a_rollout_from_create_to_completion() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.reconcile(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetCreated"))
    );
    assert_eq!(
        cluster.condition("Available"),
        Some(("False", "MinimumReplicasUnavailable"))
    );
    cluster.scale_pods(0);
    cluster.make_available(0);
    cluster.report_status(0);
    cluster.reconcile(usize::MAX);
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
fn an_unchanged_status_is_not_written() {
    let cluster = Cluster::settled(3, 1, 0);
    assert_eq!(status(&cluster.world(), &cluster.planned()), None);
}

#[test]
fn a_pod_lost_after_a_complete_rollout_does_not_reopen_it() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.sets.values_mut().next().unwrap().available = 1;
    cluster.report_status(0);
    cluster.reconcile(usize::MAX);
    assert_eq!(
        cluster.condition("Available"),
        Some(("False", "MinimumReplicasUnavailable"))
    );
    cluster.make_available(0);
    cluster.report_status(0);
    cluster.reconcile(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "NewReplicaSetAvailable"))
    );
}

/// Checks D8.
#[test]
fn progress_restarts_the_progress_deadline() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.reconcile(usize::MAX);
    cluster.sync_sets();
    for _ in 0..2 {
        cluster.now += 500;
        cluster.make_available(0);
        cluster.report_status(0);
        cluster.reconcile(usize::MAX);
        assert_eq!(cluster.plan().again, Some(Duration::from_secs(600)));
    }
}

/// Checks D8.
#[test]
fn the_last_transition_time_changes_only_with_the_condition_status() {
    let mut cluster = Cluster::new(2, 1, 0);
    let transition = |cluster: &Cluster| {
        let conditions = cluster.deployment.status.conditions.iter();
        let mut progress = conditions.filter(|one| one.r#type == "Progressing");
        let time = progress.next().unwrap().last_transition_time;
        time.timestamp().unwrap().as_second()
    };
    cluster.reconcile(usize::MAX);
    cluster.now += 100;
    cluster.sync_sets();
    cluster.make_available(0);
    cluster.report_status(0);
    cluster.reconcile(usize::MAX);
    let updated = Some(("True", "ReplicaSetUpdated"));
    assert_eq!(cluster.condition("Progressing"), updated);
    assert_eq!(transition(&cluster), 1_000);
    cluster.now += 600;
    cluster.reconcile(usize::MAX);
    let late = Some(("False", "ProgressDeadlineExceeded"));
    assert_eq!(cluster.condition("Progressing"), late);
    assert_eq!(transition(&cluster), 1_700);
}

/// Checks D2: sets without Pods keep the size that they were last scaled for.
#[test]
fn conditions_follow_a_rollout_after_a_change_of_size() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.set_image("second");
    cluster.settle();
    cluster.edit(|spec| spec.replicas = Some(5));
    cluster.settle();
    cluster.set_image("third");
    cluster.reconcile(usize::MAX);
    let created = Some(("True", "NewReplicaSetCreated"));
    assert_eq!(cluster.condition("Progressing"), created);
    cluster.settle();
    let done = Some(("True", "NewReplicaSetAvailable"));
    assert_eq!(cluster.condition("Progressing"), done);
}

/// Checks D8.
#[test]
fn a_rollout_without_progress_exceeds_its_deadline() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.set_image("broken");
    cluster.reconcile(usize::MAX);
    cluster.now += 400;
    assert_eq!(cluster.plan().again, Some(Duration::from_secs(200)));
    cluster.sync_sets();
    cluster.reconcile(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("True", "ReplicaSetUpdated"))
    );
    cluster.now += 599;
    assert!(!cluster.write_status(&cluster.world(), &cluster.planned()));
    cluster.now += 1;
    assert!(cluster.write_status(&cluster.world(), &cluster.planned()));
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("False", "ProgressDeadlineExceeded"))
    );
    assert_eq!(cluster.plan().again, None);
}

/// Checks D8.
#[test]
fn a_pause_suspends_the_progress_deadline_and_a_resume_restarts_it() {
    let mut cluster = Cluster::new(3, 1, 0);
    cluster.reconcile(usize::MAX);
    cluster.edit(|spec| spec.paused = true);
    cluster.reconcile(usize::MAX);
    cluster.now += 10_000;
    assert_eq!(cluster.plan().again, None);
    assert!(!cluster.write_status(&cluster.world(), &cluster.planned()));
    cluster.edit(|spec| spec.paused = false);
    cluster.reconcile(usize::MAX);
    assert_eq!(
        cluster.condition("Progressing"),
        Some(("Unknown", "DeploymentResumed"))
    );
    assert_eq!(cluster.plan().again, Some(Duration::from_secs(600)));
}

#[test]
fn without_a_deadline_there_is_no_progressing_condition() {
    let mut cluster = Cluster::settled(1, 1, 0);
    cluster.edit(|spec| spec.progress_deadline_seconds = None);
    cluster.settle();
    assert_eq!(cluster.condition("Progressing"), None);
}

#[test]
fn failures_to_create_a_set_or_its_pods_are_reported_as_conditions() {
    let mut cluster = Cluster::new(1, 1, 0);
    cluster.write_status(&cluster.world(), &failed(&cluster));
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
    cluster.reconcile(usize::MAX);
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
fn messages_name_the_deployment_while_the_new_set_is_missing() {
    let mut cluster = Cluster::settled(2, 1, 0);
    cluster.edit(|spec| spec.strategy.r#type = "Recreate".into());
    cluster.set_image("next");
    cluster.reconcile(usize::MAX);
    cluster.scale_at_most(0, 1);
    cluster.report_status(0);
    cluster.reconcile(usize::MAX);
    let conditions = cluster.deployment.status.conditions.iter();
    let messages: Vec<_> = conditions.map(|condition| &*condition.message).collect();
    assert!(
        messages.contains(&r#"Deployment "web" is progressing."#),
        "{messages:?}"
    );
}

/// Checks F34, K9.
#[test]
fn a_collision_a_conflict_and_a_terminating_namespace_are_not_reported_as_failures() {
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
        cluster.write_status(&cluster.world(), &failed_with(&cluster, error));
        assert_eq!(cluster.condition("Progressing"), None);
        assert_eq!(cluster.deployment.status.observed_generation, 0);
    }
    for reason in [Reason::Timeout, Reason::Invalid, Reason::InternalError] {
        let mut cluster = Cluster::new(1, 1, 0);
        cluster.write_status(
            &cluster.world(),
            &failed_with(&cluster, ApiError::new(reason, "no")),
        );
        let failed = ("False", "ReplicaSetCreateError");
        assert_eq!(cluster.condition("Progressing"), Some(failed));
    }
}

/// Checks D14.
#[test]
fn terminating_pods_are_counted_separately() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.edit(|spec| spec.replicas = Some(1));
    cluster.reconcile(usize::MAX);
    cluster.scale_pods(0);
    cluster.report_status(0);
    cluster.reconcile(usize::MAX);
    assert_eq!(cluster.deployment.status.terminating_replicas, Some(2));
    assert_eq!(cluster.deployment.status.replicas, 1);
}
