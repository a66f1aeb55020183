//! Tests of the plan, case by case.

use setpoint_controller::{Claim, View};
use setpoint_daemonset_controller::{Action, BURST, Found, LONGEST_BACKOFF, plan};
use setpoint_proto::core::Pod;
use setpoint_proto::meta::IntOrString;
use setpoint_workload::RevisionView;
use setpoint_workload::history::HASH_LABEL;

use crate::decisions::cluster::{Cluster, at};

fn reasons(cluster: &Cluster) -> Vec<&'static str> {
    let steps = plan(&cluster.world()).steps.into_iter();
    steps.map(|step| step.because).collect()
}

fn deleted(cluster: &Cluster) -> Vec<String> {
    let steps = plan(&cluster.world()).steps.into_iter();
    let deleted = steps.filter_map(|step| match step.action {
        Action::Delete { pod, .. } => Some(pod.key.name),
        _ => None,
    });
    deleted.collect()
}

fn created(cluster: &Cluster) -> Vec<String> {
    let steps = plan(&cluster.world()).steps.into_iter();
    let created = steps.filter_map(|step| match step.action {
        Action::Create { node, .. } => Some(node),
        _ => None,
    });
    created.collect()
}

/// A set that runs on these nodes.
fn running(nodes: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(nodes);
    cluster.settle();
    cluster
}

fn images(cluster: &Cluster) -> Vec<bool> {
    let newest = RevisionView::of(cluster.newest().clone());
    let pods = cluster.objects.pods.values();
    pods.map(|pod| pod.metadata.labels[HASH_LABEL] == newest.hash())
        .collect()
}

#[test]
fn a_new_set_records_its_template_and_gets_a_pod_on_each_node() {
    let mut cluster = Cluster::new(&["a", "b"]);
    assert_eq!(reasons(&cluster), ["no revision has this template"]);
    assert!(!cluster.reconcile());
    assert_eq!(created(&cluster), ["a", "b"]);
    cluster.settle();
    assert_eq!(cluster.objects.revisions.len(), 1);
    assert_eq!(reasons(&cluster), [""; 0]);
}

#[test]
fn a_set_that_is_being_deleted_plans_nothing() {
    let mut cluster = Cluster::new(&["a"]);
    cluster.objects.set.metadata.deletion_timestamp = Some(at(1).into());
    assert_eq!(plan(&cluster.world()), Default::default());
}

#[test]
fn a_pod_is_created_once_the_former_one_is_gone() {
    let mut cluster = running(&["a"]);
    let name = cluster.on("a")[0].to_owned();
    cluster.change(&name).metadata.deletion_timestamp = Some(at(1).into());
    assert!(created(&cluster).is_empty());
    // It has ended, but a finalizer keeps it.
    cluster.change(&name).status.phase = "Succeeded".into();
    assert_eq!(created(&cluster), ["a"]);
}

#[test]
fn pods_leave_nodes_that_no_longer_fit() {
    let mut cluster = running(&["a", "b", "c"]);
    cluster.taint("a", "NoExecute");
    cluster.taint("b", "NoSchedule");
    let on_a = cluster.on("a")[0].to_owned();
    assert_eq!(deleted(&cluster), [&*on_a]);
    cluster.objects.pods.clear();
    assert_eq!(created(&cluster), ["c"]);
}

#[test]
fn pods_of_a_node_that_vanished_are_deleted_at_once() {
    let mut cluster = running(&["a", "b"]);
    let on_a = cluster.on("a")[0].to_owned();
    cluster.objects.nodes.remove("a");
    let steps = plan(&cluster.world()).steps;
    let [step] = &steps[..] else {
        panic!("{steps:?}")
    };
    let Action::Delete { pod, found, .. } = &step.action else {
        panic!("{step:?}")
    };
    assert_eq!((&pod.key.name, *found), (&on_a, Found::Lost));
}

#[test]
fn of_several_pods_on_a_node_the_oldest_with_a_node_stays() {
    let mut cluster = running(&["a"]);
    let kept = cluster.on("a")[0].to_owned();
    cluster.now -= 1_000;
    cluster.add_pod("older-unbound", "a", "x");
    cluster.now += 2_000;
    cluster.add_pod("younger", "a", "x");
    cluster.run("younger");
    assert_eq!(deleted(&cluster), ["younger", "older-unbound"]);
    assert_ne!(deleted(&cluster), [kept]);
}

#[test]
fn orphans_are_adopted_and_pods_that_left_the_selector_released() {
    let mut cluster = running(&["a"]);
    let name = cluster.on("a")[0].to_owned();
    cluster.change(&name).metadata.owner_references.clear();
    let adopted = plan(&cluster.world()).steps;
    assert!(matches!(&adopted[0].action, Action::Pod(Claim::Adopt(pod)) if pod.key.name == name));
    cluster.settle();
    assert_eq!(cluster.on("a"), [&name]);
    let labels = &mut cluster.change(&name).metadata.labels;
    labels.insert("app".into(), "other".into());
    let released = plan(&cluster.world()).steps;
    assert!(
        matches!(&released[..], [step] if matches!(step.action, Action::Pod(Claim::Release(_))))
    );
    assert!(!cluster.reconcile());
    assert_eq!(created(&cluster), ["a"]);
}

#[test]
fn a_failed_pod_is_deleted_at_once_and_the_next_after_a_delay_that_doubles() {
    let mut cluster = running(&["a", "b"]);
    let mut delays = Vec::new();
    for _ in 0..13 {
        let name = cluster.on("a")[0].to_owned();
        cluster.fail(&name, "Failed");
        if let Some(again) = plan(&cluster.world()).again {
            delays.push(again.as_secs());
            cluster.now += again.as_secs() as i64 - 1;
            assert!(deleted(&cluster).is_empty());
            cluster.now += 1;
        }
        assert_eq!(deleted(&cluster), [&*name]);
        assert!(!cluster.reconcile());
        cluster.objects.pods.remove(&name);
        assert!(!cluster.reconcile(), "creates the next");
    }
    let longest = LONGEST_BACKOFF.as_secs();
    let doubled = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, longest, longest];
    assert_eq!(delays, doubled);
    let other = cluster.on("b")[0].to_owned();
    cluster.fail(&other, "Failed");
    assert_eq!(
        deleted(&cluster),
        [other],
        "other nodes have their own backoff"
    );
}

#[test]
fn a_succeeded_pod_is_deleted_without_a_delay() {
    let mut cluster = running(&["a"]);
    for _ in 0..3 {
        let name = cluster.on("a")[0].to_owned();
        cluster.fail(&name, "Succeeded");
        assert_eq!(deleted(&cluster), [&*name]);
        assert!(!cluster.reconcile());
        cluster.objects.pods.remove(&name);
        assert!(!cluster.reconcile(), "creates the next");
    }
}

#[test]
fn a_failed_pod_during_a_surge_is_not_replaced_before_its_backoff_is_over() {
    let mut cluster = running(&["a"]);
    cluster.roll(1, 0);
    for name in ["first", "second"] {
        let on_a: Vec<_> = cluster.on("a").into_iter().map(str::to_owned).collect();
        on_a.iter().for_each(|name| cluster.fail(name, "Failed"));
        assert!(created(&cluster).is_empty(), "{name}");
        assert!(!cluster.reconcile() || name == "second");
        assert_eq!(created(&cluster).is_empty(), name == "second");
        cluster.reconcile();
    }
    assert_eq!(cluster.on("a").len(), 1);
}

#[test]
fn a_rolling_update_keeps_to_max_unavailable() {
    let mut cluster = running(&["a", "b", "c", "d", "e"]);
    cluster.set_image("two");
    cluster.roll(0, 2);
    assert!(!cluster.reconcile(), "records the template");
    assert_eq!(deleted(&cluster).len(), 2);
    assert!(!cluster.reconcile());
    assert!(deleted(&cluster).is_empty(), "two nodes are without a Pod");
    cluster.run_all();
    assert!(!cluster.reconcile());
    assert!(
        deleted(&cluster).is_empty(),
        "the new Pods are not available"
    );
    let unavailable = cluster.on("a")[0].to_owned();
    cluster.run_all();
    cluster.unready(&unavailable);
    assert_eq!(deleted(&cluster).len(), 1);
    cluster.settle();
    assert_eq!(images(&cluster), [true; 5]);
}

#[test]
fn old_pods_that_are_not_available_are_replaced_first_and_in_any_number() {
    let mut cluster = running(&["a", "b", "c"]);
    let (b, c) = (cluster.on("b")[0].to_owned(), cluster.on("c")[0].to_owned());
    cluster.unready(&b);
    cluster.unready(&c);
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    assert_eq!(deleted(&cluster), [b, c]);
}

#[test]
fn percentages_are_of_the_nodes_that_should_run_the_set_and_rounded_up() {
    let mut cluster = running(&["a", "b", "c", "d", "e"]);
    cluster.taint("e", "NoSchedule");
    let strategy = &mut cluster.objects.set.spec.update_strategy;
    let rolling = strategy.rolling_update.as_mut().unwrap();
    rolling.max_unavailable = Some(IntOrString::string("30%"));
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    assert_eq!(deleted(&cluster).len(), 2);
    cluster.roll(0, 0);
    assert_eq!(deleted(&cluster).len(), 1, "at least one");
}

#[test]
fn min_ready_seconds_delay_a_rolling_update() {
    let mut cluster = running(&["a", "b"]);
    cluster.objects.set.spec.min_ready_seconds = 30;
    cluster.now += 30;
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    assert!(!cluster.reconcile(), "deletes the first");
    cluster.run_all();
    assert!(!cluster.reconcile(), "creates its successor");
    cluster.run_all();
    cluster.reconcile();
    let waiting = plan(&cluster.world());
    assert!(waiting.is_empty() && waiting.again.unwrap().as_secs() == 30);
    cluster.now += 30;
    assert_eq!(deleted(&cluster).len(), 1);
}

#[test]
fn on_delete_replaces_no_pod_by_itself() {
    let mut cluster = running(&["a", "b"]);
    cluster.objects.set.spec.update_strategy.r#type = "OnDelete".into();
    cluster.set_image("two");
    cluster.settle();
    assert_eq!(images(&cluster), [false, false]);
    let name = cluster.on("a")[0].to_owned();
    cluster.objects.pods.remove(&name);
    cluster.settle();
    assert_eq!(images(&cluster).into_iter().filter(|new| *new).count(), 1);
}

#[test]
fn a_surge_creates_the_new_pod_first_and_deletes_the_old_one_when_that_is_available() {
    let mut cluster = running(&["a", "b", "c"]);
    cluster.roll(1, 0);
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    assert_eq!(
        (created(&cluster), deleted(&cluster)),
        (vec!["a".into()], vec![])
    );
    let old = cluster.on("a")[0].to_owned();
    assert!(!cluster.reconcile());
    assert_eq!(cluster.on("a").len(), 2);
    assert!(
        plan(&cluster.world()).is_empty(),
        "it waits for the new Pod"
    );
    cluster.run_all();
    assert_eq!((created(&cluster), deleted(&cluster)), (vec![], vec![old]));
    cluster.settle();
    assert_eq!(images(&cluster), [true; 3]);
}

#[test]
fn a_surge_replaces_an_old_pod_that_is_not_ready_without_waiting() {
    let mut cluster = running(&["a", "b", "c"]);
    cluster.roll(1, 0);
    let old = cluster.on("c")[0].to_owned();
    cluster.unready(&old);
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    assert_eq!(created(&cluster), ["c", "a"]);
    assert!(!cluster.reconcile());
    assert_eq!(deleted(&cluster), [old]);
}

#[test]
fn a_surge_gives_up_a_node_that_no_longer_takes_pods_once_enough_others_are_available() {
    let mut cluster = running(&["a", "b"]);
    cluster.roll(1, 0);
    cluster.set_image("two");
    assert!(!cluster.reconcile());
    cluster.taint("a", "NoSchedule");
    let on_a = cluster.on("a")[0].to_owned();
    assert_eq!(deleted(&cluster), [&*on_a], "b is enough");
    let on_b = cluster.on("b")[0].to_owned();
    cluster.unready(&on_b);
    assert!(deleted(&cluster).is_empty());
    assert_eq!(created(&cluster), ["b"]);
    cluster.unready(&on_a);
    assert_eq!(deleted(&cluster), [on_a], "it is not available itself");
}

#[test]
fn a_rollback_renumbers_the_old_revision() {
    let mut cluster = running(&["a"]);
    let first = cluster.newest().metadata.name.clone();
    cluster.set_image("two");
    cluster.settle();
    cluster.set_image("");
    let back = "an old template is the current one again";
    assert_eq!(reasons(&cluster), [back]);
    cluster.settle();
    let newest = cluster.newest();
    assert_eq!((&newest.metadata.name, newest.revision), (&first, 3));
    assert_eq!(images(&cluster), [true]);
}

#[test]
fn a_pod_of_a_repeated_revision_of_the_template_is_up_to_date() {
    let mut cluster = running(&["a"]);
    let mut repeated = cluster.newest().clone();
    repeated.metadata.name = "log-other".into();
    repeated.metadata.uid = "other".into();
    repeated
        .metadata
        .labels
        .insert(HASH_LABEL.into(), "other".into());
    repeated.revision = 2;
    cluster
        .objects
        .revisions
        .insert("log-other".into(), repeated);
    cluster.objects.set.metadata.annotations.clear();
    assert_eq!(reasons(&cluster), [""; 0]);
}

/// Pods that were created before there were revisions have the number of their template alone.
#[test]
fn a_pod_with_the_number_of_the_template_is_up_to_date() {
    let mut cluster = running(&["a"]);
    let name = cluster.on("a")[0].to_owned();
    let number = "deprecated.daemonset.template.generation".to_owned();
    let annotations = &mut cluster.objects.set.metadata.annotations;
    annotations.insert(number, "7".into());
    for (generation, outdated) in [("7", 0), ("6", 1)] {
        let labels = &mut cluster.change(&name).metadata.labels;
        labels.remove(HASH_LABEL);
        labels.insert("pod-template-generation".into(), generation.into());
        assert_eq!(deleted(&cluster).len(), outdated, "{generation}");
    }
}

#[test]
fn an_orphaned_revision_of_other_labels_is_left_alone() {
    let mut cluster = running(&["a"]);
    let mut other = cluster.newest().clone();
    other.metadata.name = "other".into();
    other.metadata.owner_references.clear();
    let labels = &mut other.metadata.labels;
    labels.insert("app".into(), "other".into());
    cluster.objects.revisions.insert("other".into(), other);
    assert_eq!(reasons(&cluster), [""; 0]);
}

#[test]
fn old_revisions_beyond_the_limit_are_deleted_unless_pods_have_them() {
    let mut cluster = running(&["a"]);
    cluster.objects.set.spec.update_strategy.r#type = "OnDelete".into();
    let first = cluster.newest().metadata.name.clone();
    for image in ["two", "three", "four"] {
        cluster.set_image(image);
        cluster.settle();
    }
    assert_eq!(cluster.objects.revisions.len(), 4);
    cluster.objects.set.spec.revision_history_limit = Some(1);
    cluster.settle();
    let kept = cluster.objects.revisions.values();
    let kept: Vec<_> = kept.map(|revision| revision.revision).collect();
    assert_eq!(kept.iter().max(), Some(&4));
    assert!(
        cluster.objects.revisions.contains_key(&first),
        "its Pod is left"
    );
    assert_eq!(kept.len(), 2);
}

#[test]
fn a_name_that_another_object_has_increments_the_collision_count() {
    let mut cluster = Cluster::new(&["a"]);
    let mut other = cluster.clone();
    assert!(!other.reconcile());
    let mut taken = other.newest().clone();
    taken.metadata.owner_references[0].uid = "other".into();
    cluster
        .objects
        .revisions
        .insert(taken.metadata.name.clone(), taken);
    cluster.settle();
    assert_eq!(cluster.objects.revisions.len(), 2);
    assert_eq!(cluster.objects.set.status.collision_count, Some(1));
}

#[test]
fn five_hundred_nodes_get_their_pods_in_two_bursts() {
    let names: Vec<_> = (0..500).map(|n| format!("node-{n:03}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut cluster = Cluster::new(&names);
    assert!(!cluster.reconcile());
    assert_eq!(created(&cluster).len(), BURST);
    cluster.settle();
    assert_eq!(cluster.objects.pods.len(), 500);
    let nodes = cluster
        .objects
        .pods
        .values()
        .map(|pod: &Pod| &pod.spec.node_name);
    assert_eq!(nodes.collect::<std::collections::BTreeSet<_>>().len(), 500);
    cluster.objects.nodes.clear();
    assert_eq!(deleted(&cluster).len(), BURST);
}

#[test]
fn a_retry_gives_a_node_the_same_name_even_if_other_nodes_have_come() {
    let mut cluster = Cluster::new(&["b"]);
    assert!(!cluster.reconcile());
    let name_of = |cluster: &Cluster, wanted: &str| {
        let steps = plan(&cluster.world()).steps.into_iter();
        let mut names = steps.filter_map(|step| match step.action {
            Action::Create { node, name, .. } if node == wanted => Some(name),
            _ => None,
        });
        names.next().unwrap()
    };
    let first = name_of(&cluster, "b");
    assert!(first.starts_with("log-"), "{first}");
    cluster.add_node("a");
    assert_eq!(name_of(&cluster, "b"), first);
    assert_ne!(name_of(&cluster, "a"), first);
}
