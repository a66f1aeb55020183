//! Creation, repair and deletion of Pods.

use std::time::Duration;

use setpoint_proto::core::Volume;
use setpoint_statefulset_controller::{Action, BURST, plan};

use crate::decisions::cluster::Cluster;

/// A settled cluster.
fn settled(replicas: i32) -> Cluster {
    let mut cluster = Cluster::new(replicas);
    cluster.settle();
    cluster
}

#[test]
fn the_revision_of_the_template_is_created_before_any_pod() {
    let mut cluster = Cluster::new(2);
    assert_eq!(cluster.steps(), ["revision 1"]);
    cluster.reconcile();
    assert_eq!(cluster.steps(), ["create web-0"]);
}

#[test]
fn ordered_pods_are_created_one_after_another_when_those_before_are_available() {
    let mut cluster = Cluster::new(3);
    cluster.set.spec.min_ready_seconds = 10;
    cluster.reconcile();
    for (ordinal, name) in ["web-0", "web-1", "web-2"].into_iter().enumerate() {
        assert_eq!(cluster.steps(), [format!("create {name}")]);
        cluster.reconcile();
        assert_eq!(cluster.names().len(), ordinal + 1);
        assert!(cluster.steps().is_empty(), "it is pending");
        cluster.run();
        assert!(cluster.steps().is_empty(), "it is not available");
        assert_eq!(plan(&cluster.world()).again, Some(Duration::from_secs(10)));
        cluster.now += 10;
    }
    assert!(cluster.steps().is_empty());
}

#[test]
fn a_pod_that_is_not_ready_blocks_those_after_it() {
    let mut cluster = settled(3);
    cluster.pods.remove("web-2");
    cluster.unready("web-0");
    assert!(cluster.steps().is_empty());
    cluster.terminate("web-0");
    assert!(cluster.steps().is_empty());
    cluster.pods.remove("web-0");
    assert_eq!(cluster.steps(), ["create web-0"]);
}

#[test]
fn parallel_pods_are_created_and_deleted_at_once() {
    let mut cluster = Cluster::new(3).parallel();
    cluster.reconcile();
    let creates = ["create web-0", "create web-1", "create web-2"];
    assert_eq!(cluster.steps(), creates);
    cluster.reconcile();
    cluster.set.spec.replicas = Some(0);
    let deletes = ["delete web-2", "delete web-1", "delete web-0"];
    assert_eq!(cluster.steps(), deletes);
    cluster.reconcile();
    assert!(cluster.steps().is_empty(), "they are terminating");
}

#[test]
fn the_first_ordinal_can_be_moved() {
    let mut cluster = settled(2);
    cluster.set.spec.ordinals.get_or_insert_default().start = 1;
    assert_eq!(cluster.steps(), ["create web-2"], "web-0 is condemned");
    cluster.settle();
    assert_eq!(cluster.names(), ["web-1", "web-2"]);
}

#[test]
fn pods_have_the_name_labels_and_host_of_their_ordinal() {
    let mut cluster = Cluster::new(1).with_claims();
    cluster.set.spec.ordinals.get_or_insert_default().start = 5;
    cluster.settle();
    let pod = &cluster.pods["web-5"];
    let labels = &pod.metadata.labels;
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-5");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "5");
    assert_eq!(labels["app"], "web");
    let revision = &labels["controller-revision-hash"];
    assert!(cluster.revisions.contains_key(revision));
    assert_eq!(pod.metadata.generate_name, "web-");
    assert_eq!(pod.spec.hostname, "web-5");
    assert_eq!(pod.spec.subdomain, "headless");
    let volume = &pod.spec.volumes[0];
    let claim = volume.volume_source.persistent_volume_claim.as_ref();
    assert_eq!(
        (&*volume.name, &*claim.unwrap().claim_name),
        ("data", "data-web-5")
    );
}

#[test]
fn ordered_pods_are_deleted_one_after_another_from_the_highest_ordinal() {
    let mut cluster = settled(4);
    cluster.set.spec.replicas = Some(1);
    for name in ["web-3", "web-2", "web-1"] {
        assert_eq!(cluster.steps(), [format!("delete {name}")]);
        cluster.reconcile();
        assert!(cluster.steps().is_empty(), "it is terminating");
        cluster.pods.remove(name);
    }
    assert!(cluster.steps().is_empty());
}

#[test]
fn an_unhealthy_pod_blocks_scaling_down_unless_it_is_the_one_to_delete() {
    let mut cluster = settled(3);
    cluster.set.spec.replicas = Some(1);
    cluster.unready("web-2");
    assert_eq!(cluster.steps(), ["delete web-2"], "the first unhealthy Pod");
    cluster.unready("web-1");
    assert!(cluster.steps().is_empty(), "web-1 is the first");
    cluster.unready("web-0");
    assert!(cluster.steps().is_empty());
}

#[test]
fn a_ready_pod_that_is_not_available_blocks_scaling_down_too() {
    let mut cluster = settled(3);
    cluster.set.spec.min_ready_seconds = 60;
    cluster.set.spec.replicas = Some(1);
    cluster.now += 60;
    for name in ["web-1", "web-2"] {
        cluster.unready(name);
        cluster.ready(name);
    }
    assert!(cluster.steps().is_empty(), "web-1 is the first");
    cluster.now += 60;
    assert_eq!(cluster.steps(), ["delete web-2"]);
}

#[test]
fn an_ended_pod_is_deleted_and_recreated() {
    for parallel in [false, true] {
        let mut cluster = settled(2);
        if parallel {
            cluster = cluster.parallel();
        }
        cluster.fail("web-0");
        assert_eq!(cluster.steps(), ["delete web-0"]);
        cluster.reconcile();
        assert!(cluster.steps().is_empty());
        cluster.run();
        assert_eq!(cluster.steps(), ["create web-0"]);
    }
}

#[test]
fn a_pod_without_its_labels_is_repaired() {
    let mut cluster = settled(2);
    let label = "statefulset.kubernetes.io/pod-name";
    cluster.change("web-1").metadata.labels.remove(label);
    assert_eq!(cluster.steps(), ["repair web-1"]);
    cluster.settle();
    assert_eq!(cluster.pods["web-1"].metadata.labels[label], "web-1");
}

#[test]
fn a_pod_with_the_claim_of_another_ordinal_is_repaired_and_keeps_its_other_volumes() {
    let mut cluster = Cluster::new(2).with_claims();
    cluster.settle();
    let intact = cluster.pods["web-0"].spec.volumes.clone();
    let mut volumes = cluster.pods["web-1"].spec.volumes.clone();
    volumes.push(Volume {
        name: "scratch".into(),
        ..Default::default()
    });
    cluster.change("web-0").spec.volumes = volumes.clone();
    assert_eq!(cluster.steps(), ["repair web-0"]);
    cluster.settle();
    let repaired = [&intact[..], &volumes[1..]].concat();
    assert_eq!(cluster.pods["web-0"].spec.volumes, repaired);
}

#[test]
fn orphans_with_names_of_the_set_are_adopted() {
    let mut cluster = settled(2);
    cluster.change("web-1").metadata.owner_references.clear();
    assert_eq!(cluster.steps(), ["adopt web-1"]);
    for name in ["web-01", "web-x", "web", "other-3", "web-99999999999"] {
        let mut pod = cluster.pods["web-1"].clone();
        pod.metadata.name = name.into();
        cluster.pods.insert(name.into(), pod);
    }
    assert_eq!(cluster.steps(), ["adopt web-1"]);
    cluster
        .pods
        .retain(|name, _| ["web-0", "web-1"].contains(&&**name));
    cluster.reconcile();
    cluster
        .change("web-0")
        .metadata
        .labels
        .insert("app".into(), "other".into());
    assert_eq!(cluster.steps(), ["release web-0"]);
}

#[test]
fn a_set_that_is_being_deleted_is_left_alone() {
    let mut cluster = settled(2);
    cluster.set.spec.replicas = Some(9);
    cluster.set.metadata.deletion_timestamp = Some(Default::default());
    assert!(cluster.steps().is_empty());
}

#[test]
fn a_plan_has_at_most_a_burst_of_creates() {
    let mut cluster = Cluster::new(i32::MAX).parallel().with_claims();
    cluster.set.spec.ordinals.get_or_insert_default().start = i32::MAX;
    cluster.reconcile();
    assert_eq!(cluster.steps().len(), BURST);
}

#[test]
fn orphaned_revisions_are_adopted() {
    let mut cluster = settled(1);
    let revision = cluster.revisions.values_mut().next().unwrap();
    revision.metadata.owner_references.clear();
    assert_eq!(cluster.steps(), ["adopt revision"]);
    cluster.reconcile();
    assert!(cluster.steps().is_empty());
}

#[test]
fn an_orphaned_revision_of_other_labels_is_left_alone() {
    let mut cluster = settled(1);
    let mut other = cluster.revisions.values().next().unwrap().clone();
    other.metadata.name = "other".into();
    other.metadata.owner_references.clear();
    let labels = &mut other.metadata.labels;
    labels.insert("app".into(), "other".into());
    cluster.revisions.insert("other".into(), other);
    assert!(cluster.steps().is_empty());
}

#[test]
fn a_revision_whose_name_is_taken_gets_another_one() {
    let mut cluster = Cluster::new(1);
    let world = cluster.world();
    let first = world.revision_name.name.clone();
    cluster.reconcile();
    let taken = cluster.revisions.get_mut(&first).unwrap();
    taken.metadata.owner_references[0].uid = "another".into();
    cluster.settle();
    let status = &cluster.set.status;
    assert_eq!(status.collision_count, Some(1));
    assert_ne!(status.update_revision, first);
    assert_eq!(cluster.revisions.len(), 2);
    let steps = plan(&cluster.world()).steps;
    assert!(steps.is_empty(), "{steps:?}");
}

#[test]
fn a_pod_with_the_uid_of_another_owner_is_not_touched() {
    let mut cluster = settled(2);
    cluster.change("web-1").metadata.owner_references[0].uid = "another".into();
    let steps = plan(&cluster.world()).steps;
    assert!(
        matches!(&steps[..], [step] if matches!(&step.action, Action::Create { name, .. } if name == "web-1")),
        "{steps:?}"
    );
}
