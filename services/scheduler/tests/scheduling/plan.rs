//! Plans of several Pods.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use expect_test::expect;
use setpoint_model::Key;
use setpoint_scheduler::{Action, PodView};

use crate::world::{HOSTNAME, NodeB, PodB, bindings, node, plan, planned, pod, refusal, world};

fn hosts(names: &[&str]) -> Vec<NodeB> {
    let host = |name: &&str| node(name).labels(&format!("{HOSTNAME}={name}"));
    names.iter().map(host).collect()
}

fn bound(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(pod, node)| ((*pod).to_owned(), (*node).to_owned()))
        .collect()
}

#[test]
fn equal_nodes_get_the_pods_of_one_owner_in_turn() {
    let pods: Vec<_> = (0..6)
        .map(|n| {
            pod(&format!("web-{n}"))
                .cpu("100m")
                .owned("ReplicaSet", "set")
        })
        .collect();
    let bound = bindings(&world(&hosts(&["a", "b", "c"]), &[], &pods));
    let mut per_node = BTreeMap::new();
    bound
        .iter()
        .for_each(|(_, node)| *per_node.entry(node).or_insert(0) += 1);
    assert_eq!(per_node.into_values().collect::<Vec<_>>(), [2, 2, 2]);
}

#[test]
fn the_emptier_node_is_preferred() {
    let busy = pod("other").cpu("2").on("busy");
    let snapshot = world(
        &hosts(&["busy", "idle"]),
        &[busy],
        &[pod("web").cpu("100m")],
    );
    assert_eq!(bindings(&snapshot), bound(&[("web", "idle")]));
}

#[test]
fn a_discouraged_node_is_taken_only_when_no_other_fits() {
    let simulated = node("simulated")
        .has("cpu", "64")
        .taint("simulated", "", "PreferNoSchedule");
    let nodes = [simulated, node("real").has("cpu", "300m")];
    let pods = ["first", "second", "third", "fourth"].map(|name| pod(name).cpu("100m"));
    let bound = bindings(&world(&nodes, &[], &pods)).into_iter();
    let mut nodes: Vec<_> = bound.map(|(_, node)| node).collect();
    nodes.sort();
    assert_eq!(nodes, ["real", "real", "real", "simulated"]);
}

#[test]
fn a_refusal_counts_what_speaks_against_the_nodes_as_upstream_does() {
    let nodes = [
        node("small").has("cpu", "50m"),
        node("tiny").has("cpu", "10m").has("pods", "0"),
        node("cordoned").cordoned(),
        node("tainted").taint("dedicated", "db", "NoSchedule"),
    ];
    expect![[r#"
        refuse web, nomination Clear because no node fits
          0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.
          cordoned: node(s) were unschedulable
          small: Insufficient cpu
          tainted: node(s) had untolerated taint {dedicated: db}
          tiny: Too many pods, Insufficient cpu
    "#]].assert_eq(&planned(&world(&nodes, &[], &[pod("web").cpu("100m")])));
    expect![[r#"
        refuse web, nomination Keep because no node fits
          no nodes available to schedule pods
    "#]]
    .assert_eq(&planned(&world(&[], &[], &[pod("web")])));
}

#[test]
fn a_plan_binds_what_fits_and_counts_it_for_the_next_pod() {
    let nodes = [
        node("small").has("cpu", "500m"),
        node("large").has("cpu", "1"),
    ];
    let pods = ["a", "b", "c"].map(|name| pod(name).cpu("600m"));
    let pods = [&pods[..], &[pod("tiny").cpu("100m")]].concat();
    expect![[r#"
        bind a to large because the best of the nodes that fit
        refuse b, nomination Clear because no node fits
          0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.
          large: Insufficient cpu
          small: Insufficient cpu
        refuse c, nomination Clear because no node fits
          0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.
          large: Insufficient cpu
          small: Insufficient cpu
        bind tiny to small because the best of the nodes that fit
    "#]].assert_eq(&planned(&world(&nodes, &[], &pods)));
}

/// The Pods of DaemonSets name their node in `matchFields` and tolerate its conditions.
#[test]
fn a_pod_that_names_its_node_gets_that_one_in_spite_of_conditions_that_it_tolerates() {
    let keys = ["unschedulable", "disk-pressure", "memory-pressure"];
    let keys = keys.map(|key| format!("node.kubernetes.io/{key}"));
    let pressed = keys.iter().fold(node("pressed").cordoned(), |node, key| {
        node.taint(key, "", "NoSchedule")
    });
    let daemon = |keys: &[String]| {
        let tolerate = |pod: PodB, key: &String| pod.tolerates(key, "Exists", "", "NoSchedule");
        keys.iter()
            .fold(pod("daemon").wants("name in (pressed)"), tolerate)
    };
    let nodes = [node("idle"), pressed];
    let snapshot = world(&nodes, &[], &[daemon(&keys)]);
    assert_eq!(bindings(&snapshot), bound(&[("daemon", "pressed")]));
    let refused = world(&nodes, &[], &[daemon(&keys[1..])]);
    assert_eq!(
        refusal(&refused).0,
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable. \
         preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    );
}

/// Checks C3.
#[test]
fn a_gated_a_deleted_and_a_bound_pod_are_left_alone() {
    let gated = pod("gated").with(|spec| spec.scheduling_gates = vec![Default::default()]);
    let pods = [gated, pod("deleted").deleting(), pod("bound").on("a")];
    assert!(plan(&world(&hosts(&["a"]), &[], &pods)).steps.is_empty());
}

/// Checks C9: equally good nodes are told apart by the seed, and by nothing else.
#[test]
fn equally_good_nodes_are_chosen_equally_often() {
    let mut snapshot = world(&hosts(&["a", "b", "c"]), &[], &[pod("web").cpu("1m")]);
    let mut chosen = BTreeMap::new();
    for seed in 0..300 {
        snapshot.seed = seed;
        *chosen.entry(bindings(&snapshot).remove(0).1).or_insert(0) += 1;
    }
    let even = |count: &i32| (80..=120).contains(count);
    assert!(chosen.len() == 3 && chosen.values().all(even), "{chosen:?}");
}

/// A refusal names what speaks against each node, for as many as anybody reads, with the taints.
#[test]
fn a_refusal_names_the_first_nodes_one_by_one() {
    let nodes: Vec<_> = (0..40)
        .map(|n| node(&format!("n{n:02}")).taint("gpu", "yes", "NoSchedule"))
        .collect();
    let mut steps = plan(&world(&nodes, &[], &[pod("web")])).steps;
    let Some(Action::MarkUnschedulable { against, .. }) = steps.pop().map(|step| step.action)
    else {
        panic!("no node fits");
    };
    assert_eq!(against.len(), 32);
    assert_eq!(against[0].0, "n00");
    let said = format!("{:#}", against[0].1[0]);
    assert_eq!(said, "node(s) had untolerated taint {gpu: yes}");
}

/// Checks F5: a port of a node is for one Pod.
#[test]
fn pods_that_ask_for_the_same_port_run_on_different_nodes() {
    let pods = ["first", "second", "third"].map(|name| pod(name).port("TCP/0.0.0.0/8080"));
    let snapshot = world(&hosts(&["a", "b"]), &[], &pods);
    let bound: HashSet<_> = bindings(&snapshot)
        .into_iter()
        .map(|(_, node)| node)
        .collect();
    assert_eq!(bound, HashSet::from(["a".to_owned(), "b".to_owned()]));
    let refused =
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.";
    assert!(refusal(&snapshot).0.starts_with(refused));
}

/// Checks F5: constraints hold among the Pods of one plan.
#[test]
fn pods_of_one_plan_attract_repel_and_spread_each_other() {
    let nodes = hosts(&["a", "b"]);
    let apart = |name: &str| pod(name).labels("app=db").away(HOSTNAME, "app=db");
    let snapshot = world(&nodes, &[], &["1", "2", "3"].map(apart));
    assert_eq!(bindings(&snapshot).len(), 2);
    let refused = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.";
    assert!(refusal(&snapshot).0.starts_with(refused));

    let together = |name: &str| pod(name).labels("app=web").near(HOSTNAME, "app=web");
    let found = bindings(&world(&nodes, &[], &["1", "2", "3"].map(together)));
    let nodes_of: HashSet<_> = found.iter().map(|(_, node)| node).collect();
    assert_eq!((found.len(), nodes_of.len()), (3, 1));

    let spread = |name: &str| pod(name).labels("app=x").spread(1, HOSTNAME, "app=x");
    let found = bindings(&world(&nodes, &[], &["1", "2", "3", "4"].map(spread)));
    let on_a = found.iter().filter(|(_, node)| node == "a").count();
    assert_eq!((found.len(), on_a), (4, 2));
}

/// Checks F5: what is not evaluated does not count as satisfied.
#[test]
fn a_pod_with_a_constraint_that_is_not_evaluated_is_refused() {
    let claiming = pod("web").with(|spec| spec.resource_claims = vec![Default::default()]);
    let (message, _) = refusal(&world(&hosts(&["a"]), &[], &[claiming]));
    let refused = "0/1 nodes are available: 1 node(s) not checked against spec.resourceClaims, \
                   which this scheduler does not support.";
    assert!(message.starts_with(refused), "{message}");
}

/// Checks C1 and C2: a binding that was not answered is repeated where it was, and its room stays taken elsewhere, too.
#[test]
fn a_binding_in_doubt_is_repeated_and_keeps_its_room() {
    let nodes = [node("full").has("cpu", "100m"), node("free")];
    let pods = ["first", "doubtful"].map(|name| pod(name).cpu("100m"));
    let mut snapshot = world(&nodes, &[], &pods);
    let doubtful = Key::new("default", "doubtful");
    snapshot.assumed.insert(doubtful, "full".into());
    let expected = bound(&[("doubtful", "full"), ("first", "free")]);
    assert_eq!(bindings(&snapshot), expected);

    let full = snapshot.index("full").expect("it is there");
    Arc::get_mut(&mut snapshot.nodes[full].view)
        .expect("nobody else has it")
        .unschedulable = true;
    let mut found = bindings(&snapshot);
    found.sort();
    assert_eq!(found, bound(&[("doubtful", "free"), ("first", "free")]));
}

/// Checks F36: the lowest priority of all is the last, not the first.
#[test]
fn pods_of_the_lowest_priority_go_last() {
    let with_priority = |name: &str, priority| pod(name).priority(priority).view();
    let mut pods = [
        with_priority("lowest", i32::MIN),
        with_priority("plain", 0),
        with_priority("highest", i32::MAX),
    ];
    pods.sort_by_key(PodView::queue_order);
    let names = pods.map(|pod| pod.meta.key.name);
    assert_eq!(names, ["highest", "plain", "lowest"]);
}

/// Checks C7: a Pod of high priority that fits nowhere does not hold up the others.
#[test]
fn a_pod_that_fits_nowhere_does_not_starve_others() {
    let huge = pod("huge").cpu("64").priority(i32::MAX);
    let snapshot = world(&hosts(&["a"]), &[], &[huge, pod("plain").cpu("1")]);
    assert_eq!(bindings(&snapshot), bound(&[("plain", "a")]));
}
