//! What the user is told about a set.

use crate::cluster::Cluster;
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
fn pods_are_counted_by_what_they_can_do() {
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

/// Checks D14: a Pod that is not the set's own any more is not counted, on its way out or not.
#[test]
fn of_pods_on_their_way_out_only_those_that_are_selected_count() {
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
fn a_failure_says_what_could_not_be_done() {
    let mut cluster = Cluster::new(0);
    cluster.add("surplus");
    let told = status(&cluster.world(), &failed(&cluster, Reason::Forbidden)).unwrap();
    assert_eq!(told.conditions[0].reason, "FailedDelete");
    cluster.change("surplus").metadata.labels.clear();
    let told = status(&cluster.world(), &failed(&cluster, Reason::Forbidden)).unwrap();
    assert!(
        told.conditions.is_empty(),
        "a release has no reason upstream"
    );
}

#[test]
fn nothing_is_said_twice() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    assert_eq!(status(&cluster.world(), &Outcome::default()), None);
}

#[test]
fn a_round_that_acted_leaves_the_report_to_the_next() {
    let cluster = Cluster::new(2);
    let outcome = Outcome {
        done: 2,
        ..Default::default()
    };
    assert_eq!(status(&cluster.world(), &outcome), None);
}

/// The generation alone is news only once there is nothing left to do.
#[test]
fn a_new_generation_is_observed_by_a_round_that_changes_nothing() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    cluster.set.metadata.generation = 2;
    let told = |outcome| {
        let status = status(&cluster.world(), &outcome);
        status.map(|status| status.observed_generation)
    };
    let done = |done, outcome: Outcome<Action>| Outcome { done, ..outcome };
    assert_eq!(told(Outcome::default()), Some(2));
    assert_eq!(told(done(1, Outcome::default())), None);
    assert_eq!(told(done(1, failed(&cluster, Reason::Forbidden))), Some(2));
}

#[test]
fn a_set_that_never_comes_to_rest_is_reported_on_nevertheless() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    let name = cluster.pods.keys().next().unwrap().clone();
    cluster.change(&name).status.phase = "Succeeded".into();
    assert!(!cluster.round());
    assert_eq!(cluster.set.status.replicas, 1);
}

/// Checks R9.
#[test]
fn a_failure_is_told_once_and_taken_back_when_it_is_over() {
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
fn a_conflict_is_no_failure_to_tell_of() {
    let cluster = Cluster::new(2);
    let told = status(&cluster.world(), &failed(&cluster, Reason::Conflict)).unwrap();
    assert!(told.conditions.is_empty());
}

/// Checks K9.
#[test]
fn in_a_namespace_that_is_being_deleted_nothing_is_a_failure() {
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
    let told = status(&cluster.world(), &outcome).unwrap();
    assert!(told.conditions.is_empty());
}
