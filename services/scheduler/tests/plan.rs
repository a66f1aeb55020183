//! What every plan of the scheduler must keep to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use setpoint_model::{HostPort, Key, Meta, Resources};
use setpoint_proto::core::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, PodAntiAffinity, PodSpec,
    Taint, Toleration,
};
use setpoint_proto::meta::LabelSelector;
use setpoint_scheduler::{
    Action, Existing, NodeInfo, NodeView, NodeWants, PodView, Snapshot, Term, Wants, plan,
};

const GIB: i64 = 1 << 30;

fn meta(name: &str) -> Meta {
    Meta {
        key: Key::new("default", name),
        uid: format!("uid-of-{name}"),
        ..Default::default()
    }
}

fn node(name: &str, millicpu: i64, max_pods: i64) -> NodeView {
    NodeView {
        meta: Meta {
            key: Key::new("", name),
            ..Default::default()
        },
        allocatable: Resources {
            millicpu,
            memory: 64 * GIB,
            ..Default::default()
        },
        max_pods,
        unschedulable: false,
        taints: Vec::new(),
        discouraging: Vec::new(),
    }
}

fn pod(name: &str, millicpu: i64) -> PodView {
    let requests = Resources {
        millicpu,
        ..Default::default()
    };
    PodView {
        meta: meta(name),
        nonzero: requests.clone(),
        requests,
        wants: Some(Box::default()),
        ..Default::default()
    }
}

fn wanting(name: &str, node: NodeWants) -> PodView {
    PodView {
        wants: Some(Box::new(Wants {
            node,
            ..Default::default()
        })),
        ..pod(name, 1)
    }
}

fn snapshot(nodes: Vec<NodeView>, pods: Vec<PodView>) -> Snapshot {
    Snapshot {
        nodes: nodes
            .into_iter()
            .map(|node| NodeInfo::new(Arc::new(node)))
            .collect(),
        pending: pods.into_iter().map(Arc::new).collect(),
        existing: Vec::new(),
        assumed: HashMap::new(),
        seed: 7,
        now: Timestamp::UNIX_EPOCH,
    }
}

fn bindings(snapshot: &Snapshot) -> Vec<(String, String)> {
    let steps = plan(snapshot).steps.into_iter();
    let bound = steps.filter_map(|step| match step.action {
        Action::Bind { pod, node, .. } => Some((pod.meta.key.name.clone(), node)),
        Action::MarkUnschedulable { .. } => None,
    });
    bound.collect()
}

fn refusal(snapshot: &Snapshot) -> String {
    match plan(snapshot).steps.pop().map(|step| step.action) {
        Some(Action::MarkUnschedulable { message, .. }) => message,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[test]
fn equal_nodes_get_the_pods_of_one_owner_in_turn() {
    let mut pods: Vec<_> = (0..6).map(|n| pod(&format!("web-{n}"), 100)).collect();
    for pod in &mut pods {
        pod.meta.owner = Some(setpoint_model::Owner {
            uid: "set".into(),
            ..Default::default()
        });
    }
    let nodes = ["a", "b", "c"].map(|name| node(name, 4000, 110));
    let bound = bindings(&snapshot(nodes.into(), pods));
    let mut per_node = BTreeMap::new();
    bound
        .iter()
        .for_each(|(_, node)| *per_node.entry(node).or_insert(0) += 1);
    assert_eq!(per_node.into_values().collect::<Vec<_>>(), [2, 2, 2]);
}

#[test]
fn the_emptier_node_is_preferred() {
    let mut snapshot = snapshot(
        vec![node("busy", 4000, 110), node("idle", 4000, 110)],
        vec![pod("web", 100)],
    );
    snapshot.nodes[0].take(&pod("other", 2000));
    assert_eq!(bindings(&snapshot), [("web".to_owned(), "idle".to_owned())]);
}

#[test]
fn a_discouraged_node_is_taken_only_when_no_other_fits() {
    let mut discouraged = node("simulated", 64_000, 110);
    discouraged.discouraging.push(Taint {
        key: "simulated".into(),
        effect: "PreferNoSchedule".into(),
        ..Default::default()
    });
    let nodes = vec![discouraged, node("real", 300, 110)];
    let pods = ["first", "second", "third", "fourth"].map(|name| pod(name, 100));
    let bound: Vec<_> = bindings(&snapshot(nodes, pods.into()))
        .into_iter()
        .map(|(_, node)| node)
        .collect();
    assert_eq!(bound, ["real", "real", "real", "simulated"]);
}

#[test]
fn a_refusal_counts_what_speaks_against_the_nodes_as_upstream_does() {
    let mut cordoned = node("cordoned", 4000, 110);
    cordoned.unschedulable = true;
    let mut tainted = node("tainted", 4000, 110);
    tainted.taints.push(Taint {
        key: "dedicated".into(),
        value: "db".into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    });
    let nodes = vec![
        node("small", 50, 110),
        node("tiny", 10, 0),
        cordoned,
        tainted,
    ];
    assert_eq!(
        refusal(&snapshot(nodes, vec![pod("web", 100)])),
        "0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint {dedicated: db}, \
         1 node(s) were unschedulable, 2 Insufficient cpu."
    );
    assert_eq!(
        refusal(&snapshot(Vec::new(), vec![pod("web", 1)])),
        "no nodes available to schedule pods"
    );
}

/// The Pods of DaemonSets name their node in `matchFields` and tolerate its conditions.
#[test]
fn a_pod_that_names_its_node_gets_that_one_in_spite_of_conditions_that_it_tolerates() {
    let conditions = ["unschedulable", "disk-pressure", "memory-pressure"];
    let conditions = conditions.map(|condition| format!("node.kubernetes.io/{condition}"));
    let taint = |key: &String| Taint {
        key: key.clone(),
        effect: "NoSchedule".into(),
        ..Default::default()
    };
    let mut pressed = node("pressed", 4000, 110);
    pressed.unschedulable = true;
    pressed.taints = conditions.iter().map(taint).collect();
    let wants = |name: &str, tolerated: &[String]| {
        let tolerate = |key: &String| Toleration {
            key: key.clone(),
            operator: "Exists".into(),
            effect: "NoSchedule".into(),
            ..Default::default()
        };
        let named = NodeSelectorRequirement {
            key: "metadata.name".into(),
            operator: "In".into(),
            values: vec![name.into()],
        };
        NodeWants {
            terms: Some(vec![NodeSelectorTerm {
                match_fields: vec![named],
                ..Default::default()
            }]),
            tolerations: tolerated.iter().map(tolerate).collect(),
            ..Default::default()
        }
    };
    let nodes = || vec![node("idle", 4000, 110), pressed.clone()];
    let daemon = wanting("daemon", wants("pressed", &conditions));
    let bound = bindings(&snapshot(nodes(), vec![daemon]));
    assert_eq!(bound, [("daemon".into(), "pressed".into())]);
    for refused in [
        wants("pressed", &conditions[1..]),
        wants("gone", &conditions),
    ] {
        let refused = wanting("refused", refused);
        assert_eq!(bindings(&snapshot(nodes(), vec![refused])), []);
    }
}

#[test]
fn selectors_and_tolerations_decide_where_a_pod_may_run() {
    let mut fast = node("fast", 4000, 110);
    fast.meta.labels.insert("disk".into(), "ssd".into());
    fast.taints.push(Taint {
        key: "dedicated".into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    });
    let slow = node("slow", 4000, 110);
    let wants = NodeWants {
        selector: [("disk".to_owned(), "ssd".to_owned())].into(),
        tolerations: vec![Toleration {
            key: "dedicated".into(),
            operator: "Exists".into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let picky = wanting("picky", wants);
    let bound = bindings(&snapshot(vec![fast, slow], vec![picky, pod("plain", 1)]));
    assert_eq!(
        bound,
        [
            ("picky".into(), "fast".into()),
            ("plain".into(), "slow".into())
        ]
    );
}

/// Checks C3.
#[test]
fn a_gated_a_deleted_and_a_bound_pod_are_left_alone() {
    let mut gated = pod("gated", 1);
    gated.wants = Some(Box::new(Wants {
        gated: true,
        ..Default::default()
    }));
    let mut deleted = pod("deleted", 1);
    deleted.meta.deleting = true;
    let bound = PodView {
        node: Some("a".into()),
        wants: None,
        ..pod("bound", 1)
    };
    let snapshot = snapshot(vec![node("a", 4000, 110)], vec![gated, deleted, bound]);
    assert!(plan(&snapshot).steps.is_empty());
}

/// Checks C9: equally good nodes are told apart by the seed, and by nothing else.
#[test]
fn equally_good_nodes_are_chosen_equally_often() {
    let nodes = ["a", "b", "c"].map(|name| node(name, 4000, 110));
    let mut snapshot = snapshot(nodes.into(), vec![pod("web", 1)]);
    let mut chosen = BTreeMap::new();
    for seed in 0..300 {
        snapshot.seed = seed;
        *chosen.entry(bindings(&snapshot).remove(0).1).or_insert(0) += 1;
    }
    let even = |count: &i32| (80..=120).contains(count);
    assert!(chosen.len() == 3 && chosen.values().all(even), "{chosen:?}");
}

/// A refusal names what speaks against each node, for as many as anybody reads.
#[test]
fn a_refusal_names_the_first_nodes_one_by_one() {
    let nodes = (0..40).map(|n| node(&format!("n{n:02}"), 1, 110));
    let mut steps = plan(&snapshot(nodes.collect(), vec![pod("web", 5)])).steps;
    let Some(Action::MarkUnschedulable { against, .. }) = steps.pop().map(|step| step.action)
    else {
        panic!("no node fits");
    };
    assert_eq!(against.len(), 32);
    assert_eq!(against[0].0, "n00");
    assert_eq!(against[0].1[0].to_string(), "Insufficient cpu");
}

/// Checks K12: taints that discourage are counted.
#[test]
fn the_node_with_fewer_discouraging_taints_is_preferred() {
    let discouraged = |name: &str, taints: &[&str]| NodeView {
        discouraging: taints
            .iter()
            .map(|key| Taint {
                key: (*key).into(),
                effect: "PreferNoSchedule".into(),
                ..Default::default()
            })
            .collect(),
        ..node(name, 4000, 110)
    };
    let nodes = || vec![discouraged("two", &["a", "b"]), discouraged("one", &["c"])];
    let bound = |node: &str| [("web".to_owned(), node.to_owned())];
    assert_eq!(
        bindings(&snapshot(nodes(), vec![pod("web", 1)])),
        bound("one")
    );

    let tolerations = ["a", "b"].map(|key| Toleration {
        key: key.into(),
        operator: "Exists".into(),
        ..Default::default()
    });
    let tolerant = wanting(
        "web",
        NodeWants {
            tolerations: tolerations.into(),
            ..Default::default()
        },
    );
    assert_eq!(bindings(&snapshot(nodes(), vec![tolerant])), bound("two"));
}

/// Checks F5: a port of a node is for one Pod.
#[test]
fn pods_that_ask_for_the_same_port_run_on_different_nodes() {
    let serving = |name: &str| PodView {
        ports: vec![HostPort {
            ip: "0.0.0.0".into(),
            protocol: "TCP".into(),
            port: 8080,
        }],
        ..pod(name, 1)
    };
    let nodes = ["a", "b"].map(|name| node(name, 4000, 110));
    let pods = ["first", "second", "third"].map(serving);
    let snapshot = snapshot(nodes.into(), pods.into());
    let bound: HashSet<_> = bindings(&snapshot)
        .into_iter()
        .map(|(_, node)| node)
        .collect();
    assert_eq!(bound, HashSet::from(["a".to_owned(), "b".to_owned()]));
    assert_eq!(
        refusal(&snapshot),
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    );
}

/// Checks F5: what is not evaluated does not count as satisfied.
#[test]
fn a_pod_with_a_constraint_that_is_not_evaluated_is_refused() {
    let constrained = wanting(
        "web",
        NodeWants {
            unsupported: vec!["spec.resourceClaims"],
            ..Default::default()
        },
    );
    assert_eq!(
        refusal(&snapshot(vec![node("a", 4000, 110)], vec![constrained])),
        "0/1 nodes are available: 1 node(s) not checked against spec.resourceClaims, \
         which this scheduler does not support."
    );
}

/// Checks F5: the anti-affinity of a Pod that was created on its node holds in the whole domain.
#[test]
fn a_pod_does_not_go_where_an_existing_one_repels_it() {
    let zoned = |name: &str, zone: &str| {
        let mut node = node(name, 4000, 110);
        node.meta.labels.insert("zone".into(), zone.into());
        node
    };
    let nodes = vec![zoned("a", "east"), zoned("b", "east"), zoned("c", "west")];
    let term = PodAffinityTerm {
        label_selector: Some(LabelSelector::default()),
        topology_key: "zone".into(),
        ..Default::default()
    };
    let spec = PodSpec {
        affinity: Some(Affinity {
            pod_anti_affinity: Some(PodAntiAffinity {
                required_during_scheduling_ignored_during_execution: vec![term],
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let term = Term::of_pod(&spec, "default").remove(0);
    let existing = |domain: &str| Existing {
        term: term.clone(),
        domain: domain.into(),
    };
    let mut snapshot = snapshot(nodes, vec![pod("web", 1)]);
    snapshot.existing.push(existing("east"));
    assert_eq!(bindings(&snapshot), [("web".to_owned(), "c".to_owned())]);
    snapshot.existing.push(existing("west"));
    assert_eq!(
        refusal(&snapshot),
        "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules."
    );
}

/// Checks C1 and C2: a binding that was not answered is repeated where it was, and its room stays taken elsewhere, too.
#[test]
fn a_binding_in_doubt_is_repeated_and_keeps_its_room() {
    let mut snapshot = snapshot(
        vec![node("full", 100, 110), node("free", 4000, 110)],
        vec![pod("first", 100), pod("doubtful", 100)],
    );
    let doubtful = Key::new("default", "doubtful");
    snapshot.assumed.insert(doubtful, "full".into());
    let bound = |pod: &str, node: &str| (pod.to_owned(), node.to_owned());
    let expected = [bound("doubtful", "full"), bound("first", "free")];
    assert_eq!(bindings(&snapshot), expected);

    Arc::get_mut(&mut snapshot.nodes[0].view)
        .unwrap()
        .unschedulable = true;
    let expected = [bound("first", "free"), bound("doubtful", "free")];
    assert_eq!(bindings(&snapshot), expected);
}

/// Checks F36: the lowest priority of all is the last, not the first.
#[test]
fn pods_of_the_lowest_priority_go_last() {
    let with_priority = |name: &str, priority| PodView {
        wants: Some(Box::new(Wants {
            priority,
            ..Default::default()
        })),
        ..pod(name, 1)
    };
    let mut pods = [
        with_priority("lowest", i32::MIN),
        with_priority("plain", 0),
        with_priority("highest", i32::MAX),
    ];
    pods.sort_by_key(PodView::queue_order);
    let names = pods.map(|pod| pod.meta.key.name);
    assert_eq!(names, ["highest", "plain", "lowest"]);
}

prop_compose! {
    fn any_world()(
        nodes in prop::collection::vec((0i64..4000, 0i64..6), 0..8),
        placed in prop::collection::vec((0usize..8, 1i64..500), 0..10),
        pending in prop::collection::vec(0i64..1500, 0..20),
        seed: u64,
    ) -> Snapshot {
        let nodes: Vec<_> = nodes.iter().enumerate().map(|(n, (cpu, pods))| node(&format!("n{n}"), *cpu, *pods)).collect();
        let pending = pending.iter().enumerate().map(|(n, cpu)| pod(&format!("p{n}"), *cpu)).collect();
        let mut snapshot = snapshot(nodes, pending);
        snapshot.seed = seed;
        for (n, cpu) in placed {
            if let Some(node) = snapshot.nodes.get_mut(n) {
                node.take(&pod("placed", cpu));
            }
        }
        snapshot
    }
}

proptest! {
    /// Checks C5 and C1: no plan takes more than a node has left, however many Pods it places.
    #[test]
    fn no_node_is_over_committed(snapshot in any_world()) {
        let requests: HashMap<_, _> = snapshot.pending.iter().map(|pod| (pod.meta.key.name.clone(), pod.requests.millicpu)).collect();
        let mut nodes: HashMap<_, _> = snapshot.nodes.iter().map(|node| (node.view.name().to_owned(), (node.used.millicpu, node.pods))).collect();
        for (pod, name) in bindings(&snapshot) {
            let node = nodes.get_mut(&name).expect("a node of the snapshot");
            node.0 += requests[&pod];
            node.1 += 1;
            let view = &snapshot.nodes.iter().find(|node| node.view.name() == name).expect("there").view;
            prop_assert!(requests[&pod] == 0 || node.0 <= view.allocatable.millicpu);
            prop_assert!(node.1 <= view.max_pods);
        }
    }

    #[test]
    fn every_pending_pod_gets_exactly_one_decision(snapshot in any_world()) {
        let steps = plan(&snapshot).steps;
        let decided: HashSet<_> = steps.iter().map(|step| step.action.pod().meta.key.clone()).collect();
        prop_assert_eq!(decided.len(), steps.len());
        prop_assert_eq!(steps.len(), snapshot.pending.len());
    }

    #[test]
    fn a_pod_is_refused_only_when_no_node_has_room_for_it(snapshot in any_world()) {
        let mut left: HashMap<_, _> = snapshot.nodes.iter().map(|node| (node.view.name().to_owned(), (node.view.allocatable.millicpu - node.used.millicpu, node.view.max_pods - node.pods))).collect();
        for step in plan(&snapshot).steps {
            let wants = step.action.pod().requests.millicpu;
            match step.action {
                Action::Bind { node, .. } => {
                    let node = left.get_mut(&node).expect("there");
                    *node = (node.0 - wants, node.1 - 1);
                }
                Action::MarkUnschedulable { .. } => {
                    let fits = |(cpu, pods): &(i64, i64)| (wants == 0 || *cpu >= wants) && *pods > 0;
                    prop_assert!(!left.values().any(fits));
                }
            }
        }
    }

    #[test]
    fn the_same_world_gives_the_same_plan(snapshot in any_world()) {
        prop_assert_eq!(bindings(&snapshot), bindings(&snapshot));
    }
}
