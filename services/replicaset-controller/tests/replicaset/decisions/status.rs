//! Tests of the status of a ReplicaSet.

use crate::decisions::cluster::Cluster;
use setpoint_controller::Outcome;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING, Reason};
use setpoint_replicaset_controller::{Action, plan, status};

fn failed(cluster: &Cluster, reason: Reason) -> Outcome<Action> {
    Outcome {
        failed: Some(ApiError::new(reason, "exceeded quota")),
        ..Outcome::of(plan(&cluster.world()))
    }
}

#[test]
fn pods_are_counted_by_readiness_and_availability() {
    let mut cluster = Cluster::new(4);
    cluster.set.spec.min_ready_seconds = 10;
    for name in ["pending", "ready", "available", "leaving", "failed"] {
        cluster.add(name);
    }
    cluster.run("ready", "a", 995);
    cluster
        .run("available", "b", 990)
        .metadata
        .labels
        .insert("more".into(), "labels".into());
    cluster.run("leaving", "c", 0).metadata.deletion_timestamp =
        Some(jiff::Timestamp::UNIX_EPOCH.into());
    cluster.change("failed").status.phase = "Failed".into();
    let status = status(&cluster.world(), &Outcome::default()).unwrap();
    assert_eq!((status.replicas, status.fully_labeled_replicas), (3, 3));
    assert_eq!((status.ready_replicas, status.available_replicas), (2, 1));
    assert_eq!(
        (status.terminating_replicas, status.observed_generation),
        (Some(1), 1)
    );
}

/// Checks D14.
#[test]
fn terminating_replicas_counts_selected_pods_that_have_not_ended() {
    let mut cluster = Cluster::new(0);
    for name in ["ours", "relabelled", "ended"] {
        cluster.add(name).metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
    }
    cluster.change("relabelled").metadata.labels.clear();
    cluster.change("ended").status.phase = "Succeeded".into();
    let status = status(&cluster.world(), &Outcome::default()).unwrap();
    assert_eq!(status.terminating_replicas, Some(1));
}

/// Checks R9.
#[test]
fn replica_failure_has_the_reason_of_the_failed_action() {
    let mut cluster = Cluster::new(0);
    cluster.add("surplus");
    let reported = status(&cluster.world(), &failed(&cluster, Reason::Forbidden)).unwrap();
    assert_eq!(reported.conditions[0].reason, "FailedDelete");
    cluster.change("surplus").metadata.labels.clear();
    let reported = status(&cluster.world(), &failed(&cluster, Reason::Forbidden)).unwrap();
    assert!(
        reported.conditions.is_empty(),
        "upstream does not report failed releases"
    );
}

#[test]
fn an_unchanged_status_is_not_written() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    assert_eq!(status(&cluster.world(), &Outcome::default()), None);
}

#[test]
fn the_observed_generation_alone_is_not_written_by_a_reconcile_that_acts() {
    let cluster = Cluster::new(2);
    let outcome = Outcome {
        done: 2,
        ..Default::default()
    };
    assert_eq!(status(&cluster.world(), &outcome), None);
}

#[test]
fn a_new_generation_is_written_by_a_reconcile_that_does_not_act_or_fails() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    cluster.set.metadata.generation = 2;
    let reported = |outcome| {
        let status = status(&cluster.world(), &outcome);
        status.map(|status| status.observed_generation)
    };
    let done = |done, outcome: Outcome<Action>| Outcome { done, ..outcome };
    assert_eq!(reported(Outcome::default()), Some(2));
    assert_eq!(reported(done(1, Outcome::default())), None);
    assert_eq!(
        reported(done(1, failed(&cluster, Reason::Forbidden))),
        Some(2)
    );
}

#[test]
fn changed_counts_are_written_even_by_a_reconcile_that_acts() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    let name = cluster.pods.keys().next().unwrap().clone();
    cluster.change(&name).status.phase = "Succeeded".into();
    assert!(!cluster.reconcile());
    assert_eq!(cluster.set.status.replicas, 1);
}

/// Checks R9.
#[test]
fn replica_failure_is_set_once_and_removed_after_a_success() {
    let mut cluster = Cluster::new(2);
    cluster.set.status = status(&cluster.world(), &failed(&cluster, Reason::Forbidden)).unwrap();
    let condition = &cluster.set.status.conditions[0];
    assert_eq!(
        (condition.r#type.as_str(), condition.reason.as_str()),
        ("ReplicaFailure", "FailedCreate")
    );
    assert_eq!(condition.message, "exceeded quota");
    assert_eq!(
        status(&cluster.world(), &failed(&cluster, Reason::InternalError)),
        None
    );
    cluster.settle();
    assert!(cluster.set.status.conditions.is_empty());
}

/// Checks R10.
#[test]
fn a_conflict_is_not_reported() {
    let cluster = Cluster::new(2);
    let reported = status(&cluster.world(), &failed(&cluster, Reason::Conflict)).unwrap();
    assert!(reported.conditions.is_empty());
}

/// Checks K9.
#[test]
fn errors_in_a_terminating_namespace_are_not_reported() {
    let cluster = Cluster::new(2);
    let mut outcome = failed(&cluster, Reason::Forbidden);
    let cause = StatusCause {
        reason: NAMESPACE_TERMINATING.into(),
        ..Default::default()
    };
    let details = StatusDetails {
        causes: vec![cause],
        ..Default::default()
    };
    outcome.failed = outcome.failed.map(|error| error.with_details(details));
    let reported = status(&cluster.world(), &outcome).unwrap();
    assert!(reported.conditions.is_empty());
}
