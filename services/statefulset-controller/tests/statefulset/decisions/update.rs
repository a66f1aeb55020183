//! Updates of the template.

use setpoint_proto::meta::IntOrString;

use crate::decisions::cluster::Cluster;

/// A settled cluster of Pods of the image `a`, with the template changed to `b`.
fn updating(replicas: i32) -> Cluster {
    let mut cluster = Cluster::new(replicas);
    cluster.image("a");
    cluster.settle();
    cluster.image("b");
    cluster.reconcile();
    cluster
}

fn images(cluster: &Cluster) -> Vec<&str> {
    let names = cluster.names().into_iter();
    names.map(|name| cluster.image_of(name)).collect()
}

/// Deletes and recreates a Pod, and makes the new one ready.
fn replace(cluster: &mut Cluster, name: &str) {
    cluster.reconcile();
    cluster.run();
    cluster.reconcile();
    cluster.ready(name);
}

#[test]
fn pods_are_replaced_one_after_another_from_the_highest_ordinal() {
    let mut cluster = updating(3);
    for name in ["web-2", "web-1", "web-0"] {
        assert_eq!(cluster.steps(), [format!("delete {name}")]);
        cluster.reconcile();
        assert!(cluster.steps().is_empty());
        cluster.run();
        cluster.reconcile();
        assert_eq!(cluster.image_of(name), "b");
        assert!(cluster.steps().is_empty(), "it is not ready");
        cluster.ready(name);
    }
    cluster.settle();
    let status = &cluster.set.status;
    assert_eq!(status.current_revision, status.update_revision);
    assert_eq!((status.current_replicas, status.updated_replicas), (3, 3));
}

#[test]
fn a_replaced_pod_must_be_available_for_min_ready_seconds() {
    let mut cluster = updating(2);
    cluster.now += 100;
    cluster.set.spec.min_ready_seconds = 30;
    replace(&mut cluster, "web-1");
    assert!(cluster.steps().is_empty());
    cluster.now += 30;
    assert_eq!(cluster.steps(), ["delete web-0"]);
}

#[test]
fn pods_below_the_partition_keep_the_old_revision_also_when_they_are_recreated() {
    let mut cluster = updating(4);
    cluster.partition(2);
    cluster.settle();
    assert_eq!(images(&cluster), ["a", "a", "b", "b"]);
    let status = cluster.set.status.clone();
    assert_ne!(status.current_revision, status.update_revision);
    assert_eq!((status.current_replicas, status.updated_replicas), (2, 2));
    for name in ["web-0", "web-3"] {
        cluster.terminate(name);
    }
    cluster.settle();
    assert_eq!(images(&cluster), ["a", "a", "b", "b"]);
    cluster.partition(0);
    cluster.settle();
    assert_eq!(images(&cluster), ["b"; 4]);
}

#[test]
fn a_partition_counts_from_the_first_ordinal() {
    let mut cluster = Cluster::new(3);
    cluster.set.spec.ordinals.get_or_insert_default().start = 10;
    cluster.image("a");
    cluster.settle();
    cluster.image("b");
    cluster.partition(2);
    cluster.settle();
    assert_eq!(images(&cluster), ["a", "a", "b"]);
}

#[test]
fn on_delete_replaces_only_pods_that_the_user_deletes() {
    let mut cluster = updating(2);
    cluster.set.spec.update_strategy.r#type = "OnDelete".into();
    cluster.set.spec.update_strategy.rolling_update = None;
    assert!(cluster.steps().is_empty());
    cluster.terminate("web-0");
    cluster.settle();
    assert_eq!(images(&cluster), ["b", "a"]);
    let status = &cluster.set.status;
    assert_ne!(status.current_revision, status.update_revision);
}

#[test]
fn without_rolling_update_the_lowest_pods_of_the_old_revision_keep_it() {
    let mut cluster = updating(3);
    cluster.set.spec.update_strategy.rolling_update = None;
    replace(&mut cluster, "web-2");
    assert_eq!(images(&cluster), ["a", "a", "b"]);
    cluster.settle();
    assert_eq!(images(&cluster), ["b"; 3]);
}

#[test]
fn without_rolling_update_a_lost_pod_of_the_old_revision_comes_back_with_it() {
    let mut cluster = updating(3);
    cluster.set.spec.update_strategy.rolling_update = None;
    cluster.pods.remove("web-0");
    cluster.reconcile();
    assert_eq!(cluster.image_of("web-0"), "a");
}

#[test]
fn at_most_max_unavailable_pods_are_replaced_at_once() {
    let mut cluster = updating(5).parallel();
    cluster.max_unavailable(IntOrString::int(2));
    assert_eq!(cluster.steps(), ["delete web-4", "delete web-3"]);
    cluster.unready("web-0");
    assert_eq!(cluster.steps(), ["delete web-4"], "web-0 counts");
    cluster.unready("web-1");
    assert!(cluster.steps().is_empty());
    cluster.max_unavailable(IntOrString::string("70%"));
    assert_eq!(cluster.steps(), ["delete web-4"], "3 of 5");
    cluster.max_unavailable(IntOrString::string("1%"));
    cluster.settle();
    assert_eq!(images(&cluster), ["b"; 5]);
}

#[test]
fn max_unavailable_replaces_no_pod_below_the_partition() {
    let mut cluster = updating(4).parallel();
    cluster.partition(2);
    cluster.max_unavailable(IntOrString::int(4));
    assert_eq!(cluster.steps(), ["delete web-3", "delete web-2"]);
}

#[test]
fn a_parallel_update_replaces_pods_that_are_not_ready() {
    let mut cluster = updating(3).parallel();
    cluster.unready("web-2");
    assert_eq!(cluster.steps(), ["delete web-2"]);
    cluster.settle();
    assert_eq!(images(&cluster), ["b"; 3]);
}

#[test]
fn a_rollback_renumbers_the_old_revision() {
    let mut cluster = updating(2);
    cluster.settle();
    let old = cluster.set.status.update_revision.clone();
    cluster.image("a");
    assert_eq!(cluster.steps(), ["renumber 3"]);
    cluster.settle();
    assert_eq!(images(&cluster), ["a", "a"]);
    assert_eq!(cluster.revisions.len(), 2);
    assert_ne!(cluster.set.status.update_revision, old);
}

#[test]
fn a_rollback_during_an_update_keeps_the_pods_that_were_not_replaced() {
    let mut cluster = updating(3);
    replace(&mut cluster, "web-2");
    let uid = cluster.pods["web-0"].metadata.uid.clone();
    cluster.image("a");
    cluster.settle();
    assert_eq!(images(&cluster), ["a"; 3]);
    assert_eq!(cluster.pods["web-0"].metadata.uid, uid);
}

#[test]
fn old_revisions_are_deleted_down_to_the_limit() {
    let mut cluster = Cluster::new(1);
    cluster.set.spec.revision_history_limit = Some(2);
    for image in ["a", "b", "c", "d", "e"] {
        cluster.image(image);
        cluster.settle();
    }
    let mut numbers: Vec<_> = cluster.revisions.values().map(|it| it.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 4, 5]);
    cluster.set.spec.revision_history_limit = Some(0);
    cluster.settle();
    assert_eq!(cluster.revisions.len(), 1);
}

#[test]
fn revisions_of_pods_are_kept_whatever_the_limit() {
    let mut cluster = updating(2);
    cluster.set.spec.revision_history_limit = Some(0);
    cluster.partition(1);
    cluster.settle();
    assert_eq!(cluster.revisions.len(), 2);
    assert_ne!(cluster.revision_of("web-0"), cluster.revision_of("web-1"));
}
