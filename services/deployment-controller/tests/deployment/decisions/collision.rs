//! Tests of collisions of names of ReplicaSets.

use crate::decisions::cluster::{Cluster, SimulatedSet};
use setpoint_controller::View;
use setpoint_deployment_controller::DeploymentView;

/// Two host names whose templates have the same hash, found by trying random ones.
const COLLIDING: [&str; 2] = ["h1149599", "h1312382"];

#[test]
fn the_colliding_templates_differ_and_have_the_same_hash() {
    let mut cluster = Cluster::new(1, 1, 0);
    let templates = COLLIDING.map(|host_name| {
        cluster.set_image(host_name);
        DeploymentView::of(cluster.deployment.clone()).packed
    });
    assert_ne!(templates[0], templates[1]);
    assert_eq!(templates[0].hash(None), templates[1].hash(None));
}

/// Checks D4.
#[test]
fn a_hash_collision_increments_the_collision_count_once() {
    let [one, other] = COLLIDING;
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.set_image(one);
    cluster.settle();
    cluster.set_image(other);
    cluster.settle();
    assert_eq!(cluster.deployment.status.collision_count, Some(1));
    assert_eq!(cluster.pods_by_revision(), [("2".to_owned(), 2)]);
    cluster.set_image(one);
    cluster.settle();
    assert_eq!(cluster.deployment.status.collision_count, Some(1));
    assert_eq!(
        (cluster.sets.len(), cluster.pods_by_revision()),
        (2, vec![("3".to_owned(), 2)])
    );
}

/// Checks D4.
#[test]
fn a_name_taken_by_a_set_of_another_owner_increments_the_collision_count() {
    let mut cluster = Cluster::new(2, 1, 0);
    let name = DeploymentView::of(cluster.deployment.clone()).set_name();
    let mut set = cluster.blank(&name);
    set.metadata.owner_references[0].uid = "another".into();
    cluster.sets.insert(name.clone(), SimulatedSet::of(set));
    cluster.edit(|spec| spec.paused = true);
    cluster.settle();
    assert_eq!(cluster.deployment.status.collision_count, None, "paused");
    cluster.edit(|spec| spec.paused = false);
    for _ in 0..2 {
        cluster.settle();
        assert_eq!(cluster.deployment.status.collision_count, Some(1));
        assert_eq!((cluster.sets.len(), cluster.pods()), (2, (2, 2)));
    }
}

/// Checks D4: a gateway that drops a field does not make the controller create sets for ever.
#[test]
fn a_template_stored_without_a_field_makes_one_set() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.drops_hostname = true;
    cluster.set_image("lost");
    cluster.settle();
    assert_eq!((cluster.sets.len(), cluster.pods()), (1, (2, 2)));
    assert_eq!(cluster.deployment.status.collision_count, None);
}

/// Checks D4.
#[test]
fn the_annotation_of_the_stored_template_matches_only_the_template_that_was_sent() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.drops_hostname = true;
    cluster.set_image("lost");
    cluster.settle();
    cluster.drops_hostname = false;
    cluster.set_image("kept");
    cluster.settle();
    assert_eq!(cluster.pods_by_revision(), [("2".to_owned(), 2)]);
    cluster.set_image("lost");
    cluster.settle();
    assert_eq!(
        (cluster.sets.len(), cluster.pods_by_revision()),
        (2, vec![("3".to_owned(), 2)])
    );
    assert_eq!(cluster.deployment.status.collision_count, None);
}

/// Checks F9: as upstream, the edited set is a collision.
#[test]
fn a_set_whose_template_was_edited_is_replaced() {
    for drops_hostname in [false, true] {
        let mut cluster = Cluster::new(2, 1, 0);
        cluster.drops_hostname = drops_hostname;
        cluster.set_image("good");
        cluster.settle();
        let edited = cluster.sets.values_mut().next().unwrap();
        edited.set.spec.template.spec.hostname = "evil".into();
        edited.set.metadata.generation += 1;
        let edited = edited.set.metadata.name.clone();
        cluster.settle();
        assert_eq!(cluster.deployment.status.collision_count, Some(1));
        assert_eq!((cluster.sets.len(), cluster.pods()), (2, (2, 2)));
        assert_eq!(cluster.sets[&edited].pods, 0);
        cluster.settle();
        assert_eq!(cluster.sets.len(), 2, "replaced once");
    }
}

/// Checks D4, D12.
#[test]
fn an_orphan_that_has_the_name_is_adopted_without_a_collision() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let orphan = cluster.sets.values_mut().next().unwrap();
    orphan.set.metadata.owner_references.clear();
    cluster.settle();
    assert_eq!((cluster.sets.len(), cluster.pods()), (1, (2, 2)));
    assert_eq!(cluster.deployment.status.collision_count, None);
}
