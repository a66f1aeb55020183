//! Two templates under one name.

use crate::cluster::{Cluster, Tracked};
use setpoint_deployment_controller::{Deployment, Set};
use setpoint_machinery::View;
use setpoint_model::template;

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

/// Checks D4.
#[test]
fn a_set_is_true_to_its_name_for_any_collision_count_so_far() {
    let mut cluster = Cluster::settled(1, 1, 0);
    let set = cluster.sets.values_mut().next().unwrap();
    assert!(Set::of(set.set.clone()).is_true_to_its_name(None));
    let hash = setpoint_model::hash::template_hash(&set.set.spec.template, Some(2));
    set.set.metadata.labels.insert(template::LABEL.into(), hash);
    assert!(!Set::of(set.set.clone()).is_true_to_its_name(Some(1)));
    assert!(Set::of(set.set.clone()).is_true_to_its_name(Some(2)));
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
