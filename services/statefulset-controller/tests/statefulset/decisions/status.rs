//! The status.

use setpoint_controller::Outcome;
use setpoint_statefulset_controller::status;

use crate::decisions::cluster::Cluster;

fn counts(cluster: &Cluster) -> [i32; 5] {
    let status = &cluster.set.status;
    [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.current_replicas,
        status.updated_replicas,
    ]
}

#[test]
fn every_pod_counts_and_terminating_ones_have_no_revision() {
    let mut cluster = Cluster::new(3);
    cluster.settle();
    assert_eq!(counts(&cluster), [3, 3, 3, 3, 3]);
    cluster.terminate("web-2");
    cluster.reconcile();
    assert_eq!(counts(&cluster), [3, 3, 3, 2, 2]);
    cluster.unready("web-1");
    cluster.reconcile();
    assert_eq!(counts(&cluster), [3, 2, 2, 2, 2]);
    cluster.set.spec.min_ready_seconds = 60;
    cluster.reconcile();
    assert_eq!(counts(&cluster), [3, 2, 0, 2, 2]);
    assert_eq!(cluster.set.status.collision_count, Some(0));
}

#[test]
fn the_generation_is_not_observed_before_the_revision_exists() {
    let mut cluster = Cluster::new(1);
    cluster.settle();
    cluster.image("b");
    let outcome = Outcome::default();
    assert_eq!(status(&cluster.world(), &outcome), None);
    cluster.reconcile();
    let status = status(&cluster.world(), &outcome).unwrap();
    assert_eq!(status.observed_generation, 2);
    assert_ne!(status.current_revision, status.update_revision);
    assert_eq!((status.current_replicas, status.updated_replicas), (1, 0));
}

#[test]
fn a_status_that_has_not_changed_is_not_written() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    assert_eq!(status(&cluster.world(), &Outcome::default()), None);
}

#[test]
fn an_update_is_complete_when_all_pods_are_updated_and_ready() {
    let mut cluster = Cluster::new(2);
    cluster.settle();
    cluster.image("b");
    let revisions = |cluster: &Cluster| {
        let status = &cluster.set.status;
        status.current_revision == status.update_revision
    };
    while cluster.names().len() < 2 || cluster.image_of("web-0") != "b" {
        cluster.reconcile();
        cluster.run();
    }
    cluster.unready("web-0");
    cluster.reconcile();
    assert!(!revisions(&cluster));
    cluster.ready("web-0");
    cluster.reconcile();
    assert!(revisions(&cluster));
}
