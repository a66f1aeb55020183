//! Tests of ReplicationControllers, which are planned for and reported as ReplicaSets.

use std::sync::Arc;

use setpoint_controller::{Outcome, Owns, View};
use setpoint_proto::core::ReplicationController;
use setpoint_proto::{ApiError, Reason};
use setpoint_replicaset_controller::{
    ReplicaSetView, Replicated, ReplicationControllerView, World, plan, status,
};
use setpoint_workload::PodView;

use crate::decisions::cluster::Cluster;

/// Returns a ReplicationController of the same content as the cluster's set.
fn controller(cluster: &Cluster) -> ReplicationController {
    let set = cluster.set.clone();
    let mut controller = ReplicationController {
        metadata: set.metadata,
        ..Default::default()
    };
    controller.spec.replicas = set.spec.replicas;
    controller.spec.min_ready_seconds = set.spec.min_ready_seconds;
    controller.spec.selector = set.spec.selector.unwrap().match_labels;
    controller.spec.template = Some(set.spec.template);
    controller
}

fn view(controller: ReplicationController) -> Arc<ReplicaSetView> {
    Arc::new(ReplicationControllerView::of(controller)).into_set()
}

fn world(cluster: &Cluster, controller: &ReplicationController) -> World {
    World {
        set: view(controller.clone()),
        ..cluster.world()
    }
}

#[test]
fn a_controller_is_seen_as_the_set_of_the_same_content() {
    let cluster = Cluster::new(3);
    let set = ReplicaSetView {
        counts_terminating: false,
        ..ReplicaSetView::of(cluster.set.clone())
    };
    assert_eq!(*view(controller(&cluster)), set);
    let mut by_default = controller(&cluster);
    by_default.spec.replicas = None;
    assert_eq!(view(by_default).replicas, 1);
}

#[test]
fn an_empty_selector_selects_the_labels_of_the_template_and_without_labels_nothing() {
    let mut cluster = Cluster::new(1);
    let pod = PodView::of(cluster.add("a").clone());
    let mut controller = controller(&cluster);
    controller.spec.selector.clear();
    assert!(ReplicationControllerView::of(controller.clone()).selects(&pod));
    controller.spec.template = None;
    assert!(!ReplicationControllerView::of(controller).selects(&pod));
}

#[test]
fn a_status_that_was_written_is_read_back_and_not_written_again() {
    let mut cluster = Cluster::new(2);
    for name in ["a", "b", "leaving"] {
        cluster.add(name);
        cluster.run(name, "node", 0);
    }
    let now = jiff::Timestamp::UNIX_EPOCH;
    cluster.change("leaving").metadata.deletion_timestamp = Some(now.into());
    let mut controller = controller(&cluster);
    let failed = Outcome {
        failed: Some(ApiError::new(Reason::Forbidden, "exceeded quota")),
        ..Outcome::of(plan(&Cluster::new(1).world()))
    };
    for outcome in [failed, Outcome::default()] {
        let world = world(&cluster, &controller);
        let reported = status(&world, &outcome).unwrap();
        assert_eq!((reported.replicas, reported.available_replicas), (2, 2));
        assert_eq!(reported.terminating_replicas, None);
        controller.status = ReplicationControllerView::status(reported.clone());
        assert_eq!(view(controller.clone()).status, reported);
    }
    assert!(controller.status.conditions.is_empty());
    let settled = world(&cluster, &controller);
    assert!(plan(&settled).is_empty());
    assert_eq!(status(&settled, &Outcome::default()), None);
}
