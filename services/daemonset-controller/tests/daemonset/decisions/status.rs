//! Tests of the status.

use setpoint_controller::Outcome;
use setpoint_daemonset_controller::{plan, status};
use setpoint_proto::apps::{DaemonSetCondition, DaemonSetStatus};
use setpoint_proto::{ApiError, Reason};

use crate::decisions::cluster::{Cluster, at};

fn running(nodes: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(nodes);
    cluster.settle();
    cluster
}

/// Returns the status after a plan of which nothing was executed.
fn idle(cluster: &Cluster) -> Option<DaemonSetStatus> {
    status(&cluster.world(), &Outcome::default())
}

#[test]
fn the_counts_are_of_nodes() {
    let mut cluster = running(&["a", "b", "c", "d"]);
    let status = &cluster.objects.set.status;
    let expected = DaemonSetStatus {
        current_number_scheduled: 4,
        desired_number_scheduled: 4,
        number_ready: 4,
        number_available: 4,
        updated_number_scheduled: 4,
        observed_generation: 1,
        ..Default::default()
    };
    assert_eq!(status, &expected);
    cluster.taint("a", "NoSchedule");
    let (b, c) = (cluster.on("b")[0].to_owned(), cluster.on("c")[0].to_owned());
    cluster.unready(&b);
    cluster.objects.pods.remove(&c);
    cluster.set_image("two");
    let expected = DaemonSetStatus {
        current_number_scheduled: 2,
        desired_number_scheduled: 3,
        number_misscheduled: 1,
        number_ready: 1,
        number_available: 1,
        number_unavailable: 2,
        updated_number_scheduled: 0,
        observed_generation: 2,
        ..Default::default()
    };
    assert_eq!(idle(&cluster), Some(expected));
}

/// Checks D11: as for Deployments.
#[test]
fn a_ready_pod_is_available_after_min_ready_seconds() {
    let mut cluster = running(&["a"]);
    cluster.objects.set.spec.min_ready_seconds = 30;
    let counted = idle(&cluster).unwrap();
    assert_eq!((counted.number_ready, counted.number_available), (1, 0));
    assert_eq!(counted.number_unavailable, 1);
    cluster.now += 30;
    assert_eq!(idle(&cluster), None);
}

#[test]
fn during_a_surge_the_old_pod_counts() {
    let mut cluster = running(&["a"]);
    cluster.roll(1, 0);
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    assert!(!cluster.reconcile());
    assert_eq!(cluster.on("a").len(), 2);
    let counted = idle(&cluster).unwrap_or(cluster.objects.set.status.clone());
    assert_eq!(
        (counted.updated_number_scheduled, counted.number_available),
        (0, 1)
    );
}

/// Checks D14: as for Deployments.
#[test]
fn a_generation_is_observed_once_its_template_is_recorded() {
    let mut cluster = running(&["a"]);
    cluster.set_image("two");
    let world = cluster.world();
    let failed = |reason| Outcome {
        failed: Some(ApiError::new(reason, "no")),
        ..Outcome::of(plan(&world))
    };
    let reported = status(&world, &failed(Reason::Forbidden)).unwrap();
    assert_eq!(reported.observed_generation, 1);
    let acted = Outcome {
        done: 1,
        ..Outcome::of(plan(&world))
    };
    let reported = status(&world, &acted).unwrap();
    assert_eq!(
        (
            reported.observed_generation,
            reported.updated_number_scheduled
        ),
        (2, 0)
    );
}

#[test]
fn a_generation_is_observed_although_a_pod_could_not_be_written() {
    let mut cluster = running(&["a"]);
    cluster.objects.set.metadata.generation = 5;
    let failed = Outcome {
        failed: Some(ApiError::new(Reason::Forbidden, "no")),
        ..Outcome::default()
    };
    let reported = status(&cluster.world(), &failed).unwrap();
    assert_eq!(reported.observed_generation, 5);
}

#[test]
fn after_an_action_a_generation_alone_is_not_written() {
    let mut cluster = running(&["a"]);
    cluster.objects.set.metadata.generation = 5;
    let after = |done, reason: Option<Reason>| {
        let outcome = Outcome {
            done,
            failed: reason.map(|reason| ApiError::new(reason, "no")),
            ..Outcome::default()
        };
        status(&cluster.world(), &outcome).is_some()
    };
    assert!(!after(1, None));
    assert!(after(0, None));
    assert!(after(1, Some(Reason::Forbidden)));
}

#[test]
fn orphans_do_not_count_and_conditions_are_kept() {
    let mut cluster = running(&["a"]);
    let known = vec![DaemonSetCondition {
        r#type: "Known".into(),
        ..Default::default()
    }];
    cluster.objects.set.status.conditions = known.clone();
    let name = cluster.on("a")[0].to_owned();
    cluster.change(&name).metadata.owner_references.clear();
    let reported = idle(&cluster).unwrap();
    assert_eq!(reported.current_number_scheduled, 0);
    assert_eq!(reported.conditions, known);
}

#[test]
fn a_pod_is_up_to_date_although_the_revision_of_the_template_was_deleted() {
    let mut cluster = running(&["a"]);
    cluster.objects.set.metadata.annotations.clear();
    cluster.objects.revisions.clear();
    assert_eq!(idle(&cluster), None);
}

#[test]
fn a_set_that_is_being_deleted_keeps_its_status() {
    let mut cluster = running(&["a", "b"]);
    cluster.objects.pods.clear();
    cluster.objects.set.metadata.deletion_timestamp = Some(at(1).into());
    assert_eq!(idle(&cluster), None);
}
