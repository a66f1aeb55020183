//! Two templates under one name.

use crate::cluster::{Cluster, Tracked};
use setpoint_controller::View;
use setpoint_deployment_controller::Deployment;

/// Two host names whose templates have the same hash, found by trying a million.
const TWINS: [&str; 2] = ["h1149599", "h1312382"];

#[test]
fn the_twins_have_one_hash_and_two_templates() {
    let mut cluster = Cluster::new(1, 1, 0);
    let templates = TWINS.map(|twin| {
        cluster.set_image(twin);
        Deployment::of(cluster.deployment.clone()).packed
    });
    assert_ne!(templates[0], templates[1]);
    assert_eq!(templates[0].hash(None), templates[1].hash(None));
}

/// Checks D4.
#[test]
fn a_collision_with_another_template_is_counted_once() {
    let [one, other] = TWINS;
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.set_image(one);
    cluster.settle();
    cluster.set_image(other);
    cluster.settle();
    assert_eq!(cluster.deployment.status.collision_count, Some(1));
    assert_eq!(cluster.spread(), [("2".to_owned(), 2)]);
    cluster.set_image(one);
    cluster.settle();
    assert_eq!(cluster.deployment.status.collision_count, Some(1));
    assert_eq!(
        (cluster.sets.len(), cluster.spread()),
        (2, vec![("3".to_owned(), 2)])
    );
}

/// Checks D4.
#[test]
fn a_name_that_someone_else_took_is_avoided() {
    let mut cluster = Cluster::new(2, 1, 0);
    let name = Deployment::of(cluster.deployment.clone()).set_name();
    let mut set = cluster.blank(&name);
    set.metadata.owner_references[0].uid = "another".into();
    cluster.sets.insert(name.clone(), Tracked::of(set));
    cluster.edit(|spec| spec.paused = true);
    cluster.settle();
    assert_eq!(cluster.deployment.status.collision_count, None, "it rests");
    cluster.edit(|spec| spec.paused = false);
    for _ in 0..2 {
        cluster.settle();
        assert_eq!(cluster.deployment.status.collision_count, Some(1));
        assert_eq!((cluster.sets.len(), cluster.pods()), (2, (2, 2)));
    }
}

/// Checks D4: a gateway that loses a field must not make us create sets for ever.
#[test]
fn a_template_that_is_kept_otherwise_than_it_was_sent_makes_one_set() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.forgetful = true;
    cluster.set_image("lost");
    cluster.settle();
    assert_eq!((cluster.sets.len(), cluster.pods()), (1, (2, 2)));
    assert_eq!(cluster.deployment.status.collision_count, None);
}

/// Checks D4: the note is about two templates, and no other.
#[test]
fn a_set_that_was_stored_otherwise_is_of_the_template_that_was_sent_alone() {
    let mut cluster = Cluster::new(2, 1, 0);
    cluster.forgetful = true;
    cluster.set_image("lost");
    cluster.settle();
    cluster.forgetful = false;
    cluster.set_image("kept");
    cluster.settle();
    assert_eq!(cluster.spread(), [("2".to_owned(), 2)]);
    cluster.set_image("lost");
    cluster.settle();
    assert_eq!(
        (cluster.sets.len(), cluster.spread()),
        (2, vec![("3".to_owned(), 2)])
    );
    assert_eq!(cluster.deployment.status.collision_count, None);
}

/// Checks F9: as upstream, the set that was edited is one of another template that has the name.
#[test]
fn a_set_whose_template_was_edited_is_replaced() {
    for forgetful in [false, true] {
        let mut cluster = Cluster::new(2, 1, 0);
        cluster.forgetful = forgetful;
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
        assert_eq!(cluster.sets.len(), 2, "once");
    }
}

/// Checks D4, D12.
#[test]
fn an_orphan_under_the_name_is_adopted_and_no_collision() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let orphan = cluster.sets.values_mut().next().unwrap();
    orphan.set.metadata.owner_references.clear();
    cluster.settle();
    assert_eq!((cluster.sets.len(), cluster.pods()), (1, (2, 2)));
    assert_eq!(cluster.deployment.status.collision_count, None);
}
