//! PodTopologySpread. The cases are those of upstream's tests.

use std::sync::Arc;

use setpoint_proto::core::TopologySpreadConstraint;
use setpoint_scheduler::{Plugin, ServiceView};

use crate::world::{Case, HOSTNAME, NodeB, PodB, node, objections, only, pod, scores, world};

const SKEW: &str = "node(s) didn't match pod topology spread constraints";
const LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";
const TAINT: &str = "node(s) had untolerated taint(s)";
const LABELS: &str = "node(s) didn't match Pod's node affinity/selector";

/// Nodes a, b in zone1 and x, y in zone2.
fn four() -> Vec<NodeB> {
    let zones = [
        ("a", "zone1"),
        ("b", "zone1"),
        ("x", "zone2"),
        ("y", "zone2"),
    ];
    let labels = |(name, zone)| format!("zone={zone},node={name},{HOSTNAME}={name}");
    let nodes = zones.into_iter();
    nodes.map(|of| node(of.0).labels(&labels(of))).collect()
}

/// Nodes a, b, … each with its own label, without zones.
fn plain(names: &[&str]) -> Vec<NodeB> {
    let labels = |name: &str| format!("node={name},{HOSTNAME}={name}");
    let nodes = names.iter();
    nodes.map(|name| node(name).labels(&labels(name))).collect()
}

/// Pods with labels on nodes, as in `a:foo b:foo+bar`.
fn placed(pods: &str) -> Vec<PodB> {
    let pods = pods.split_whitespace().enumerate();
    pods.map(|(n, one)| {
        let (node, labels) = one.split_once(':').expect("node:labels");
        let pod = pod(&format!("placed-{n}")).on(node);
        pod.labels(&labels.replace('+', ","))
    })
    .collect()
}

fn foo() -> PodB {
    pod("p").labels("foo")
}

/// Checks F5: upstream's `TestSingleConstraint`.
#[test]
fn one_constraint_rejects_nodes_that_would_exceed_the_skew() {
    let of = |max_skew, key, selector| foo().spread(max_skew, key, selector);
    let min_domains = |key, domains| {
        foo().spread_by(2, key, "foo", |constraint| {
            constraint.min_domains = Some(domains);
        })
    };
    let three_three = "a:foo a:foo b:foo y:foo y:foo y:foo";
    let mut unlabeled = four();
    unlabeled[1] = node("b").labels("zon=zone1,node=b");
    let other = |pod: PodB, namespace| vec![pod.namespace(namespace)];
    let in_others = [
        other(placed("a:foo").remove(0), "ns1"),
        other(placed("a:foo").remove(0), "ns2"),
        placed("x:foo y:foo"),
    ]
    .concat();
    let leaving = [vec![placed("a:foo").remove(0).deleting()], placed("b:foo")].concat();
    let cases: Vec<Case<[&str; 4]>> = vec![
        (four(), vec![], of(1, "zone", "foo"), ["", "", "", ""]),
        (four(), vec![], of(1, "zone", "bar"), ["", "", "", ""]),
        (
            four(),
            in_others,
            of(1, "zone", "foo"),
            ["", "", SKEW, SKEW],
        ),
        (
            four(),
            placed("x:foo y:foo"),
            of(1, "zone", "-"),
            ["", "", "", ""],
        ),
        (
            four(),
            placed(three_three),
            of(1, "zone", "foo"),
            ["", "", "", ""],
        ),
        (
            unlabeled,
            placed("a:foo b:foo x:foo y:foo"),
            of(1, "zone", "foo"),
            ["", LABEL, SKEW, SKEW],
        ),
        (
            four(),
            vec![],
            of(1, "rack", "foo"),
            [LABEL, LABEL, LABEL, LABEL],
        ),
        (
            four(),
            placed(three_three),
            of(1, "node", "foo"),
            [SKEW, SKEW, "", SKEW],
        ),
        (
            four(),
            placed(three_three),
            of(2, "node", "foo"),
            [SKEW, "", "", SKEW],
        ),
        (
            four(),
            placed(three_three),
            pod("p").labels("bar").spread(1, "node", "foo"),
            [SKEW, "", "", SKEW],
        ),
        (
            four(),
            placed(three_three),
            of(1, "node", "foo").wants("node in (a, y)"),
            ["", LABELS, LABELS, SKEW],
        ),
        (
            four(),
            placed("b:foo b:foo y:foo"),
            of(1, "zone", "foo").wants("node notin (b)"),
            ["", LABELS, SKEW, SKEW],
        ),
        (
            four(),
            placed("a:foo b:foo y:foo"),
            min_domains("zone", 3),
            [SKEW, SKEW, "", ""],
        ),
        (
            four(),
            placed("a:foo b:foo y:foo"),
            min_domains("zone", 1),
            ["", "", "", ""],
        ),
        (
            plain(&["a", "b", "c", "d"])[..3].to_vec(),
            placed("a:foo a:foo b:foo b:foo c:foo"),
            min_domains("node", 4),
            [SKEW, SKEW, "", "-"],
        ),
        (
            plain(&["a", "b", "c"]),
            placed("a:foo a:foo b:foo b:foo c:foo"),
            min_domains("node", 2),
            ["", "", "", "-"],
        ),
        (
            plain(&["a", "b"]),
            leaving,
            of(1, "node", "foo"),
            ["", SKEW, "-", "-"],
        ),
    ];
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let found = objections(&world(&nodes, &placed, &[]), &incoming);
        assert_eq!(found, expected[..nodes.len()], "case {n}");
    }
}

/// Checks F5: upstream's cases of node inclusion policies.
#[test]
fn policies_say_whether_nodes_that_the_pod_cannot_use_count() {
    let policy =
        |change: fn(&mut TopologySpreadConstraint)| foo().spread_by(1, "node", "foo", change);
    let ignore_affinity = || policy(|one| one.node_affinity_policy = Some("Ignore".into()));
    let honor_taints = || policy(|one| one.node_taints_policy = Some("Honor".into()));
    let labeled = || {
        let mut nodes = plain(&["a", "b", "x", "y"]);
        for node in &mut nodes[..3] {
            *node = node.clone().labels("foo");
        }
        nodes
    };
    let tainted = |taints: &[(&str, &str)]| {
        let mut nodes = plain(&["a", "b", "x", "y"]);
        for node in &mut nodes {
            for (name, effect) in taints {
                if node.0.metadata.name == *name {
                    *node = node.clone().taint("bar", "", effect);
                }
            }
        }
        nodes
    };
    let one_each = || placed("a:foo b:foo y:foo");
    let cases: Vec<(Vec<NodeB>, PodB, [&str; 4])> = vec![
        (
            labeled(),
            policy(|_| {}).selects("foo"),
            [SKEW, SKEW, "", LABELS],
        ),
        (
            labeled(),
            ignore_affinity().selects("foo"),
            [SKEW, SKEW, "", LABELS],
        ),
        (
            labeled(),
            policy(|_| {}).wants("foo in ()").wants("foo"),
            [SKEW, SKEW, "", LABELS],
        ),
        // The domain with the fewest Pods is x. It is ignored if the Pod does not tolerate its taint.
        (
            tainted(&[("x", "NoSchedule")]),
            policy(|_| {}),
            [SKEW, SKEW, TAINT, SKEW],
        ),
        (
            tainted(&[("x", "NoSchedule")]),
            honor_taints(),
            ["", "", TAINT, ""],
        ),
        (
            tainted(&[("x", "NoSchedule")]),
            honor_taints().tolerates("bar", "Exists", "", "NoSchedule"),
            [SKEW, SKEW, "", SKEW],
        ),
        (
            tainted(&[("x", "PreferNoSchedule")]),
            honor_taints(),
            [SKEW, SKEW, "", SKEW],
        ),
        (
            tainted(&[("x", "NoExecute")]),
            honor_taints(),
            ["", "", TAINT, ""],
        ),
    ];
    for (n, (nodes, incoming, expected)) in cases.into_iter().enumerate() {
        let found = objections(&world(&nodes, &one_each(), &[]), &incoming);
        assert_eq!(found, expected, "case {n}");
    }
    // Only a node that the Pod's affinity excludes has no Pod.
    let few = || placed("a:foo b:foo x:foo");
    let honored = objections(
        &world(&labeled(), &few(), &[]),
        &policy(|_| {}).selects("foo"),
    );
    assert_eq!(honored, ["", "", "", LABELS]);
    let ignored = objections(
        &world(&labeled(), &few(), &[]),
        &ignore_affinity().selects("foo"),
    );
    assert_eq!(ignored, [SKEW, SKEW, SKEW, LABELS]);
}

/// Checks F5: upstream's `TestMultipleConstraints`.
#[test]
fn all_constraints_must_hold() {
    let both = |zone: &str, node: &str| {
        let pod = pod("p").labels("foo,bar");
        pod.spread(1, "zone", zone).spread(1, "node", node)
    };
    let cases: Vec<(Vec<PodB>, PodB, [&str; 4])> = vec![
        (
            placed("a:foo a:foo b:foo y:foo y:foo y:foo"),
            both("foo", "foo"),
            [SKEW, SKEW, "", SKEW],
        ),
        (
            placed("a:foo a:foo b:foo x:foo y:foo y:foo y:foo y:foo"),
            both("foo", "foo"),
            [SKEW, "", SKEW, SKEW],
        ),
        (
            placed("a:foo b:bar y:foo+bar"),
            both("foo", "bar"),
            ["", SKEW, "", SKEW],
        ),
        (
            placed("a:foo b:foo+bar x:foo y:foo+bar x:bar"),
            both("foo", "bar"),
            ["", SKEW, SKEW, SKEW],
        ),
        (
            placed("a:foo b:foo b:bar x:foo+bar y:bar"),
            both("foo", "bar"),
            [SKEW, SKEW, SKEW, SKEW],
        ),
    ];
    for (n, (placed, incoming, expected)) in cases.into_iter().enumerate() {
        let found = objections(&world(&four(), &placed, &[]), &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

#[test]
fn the_pods_own_values_of_label_keys_narrow_the_group() {
    let incoming = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        foo()
            .labels("hash=2")
            .spread_by(1, "zone", "foo", |constraint| {
                constraint.match_label_keys = keys;
            })
    };
    let world = world(
        &four(),
        &placed("a:foo+hash=1 b:foo+hash=1 x:foo+hash=2"),
        &[],
    );
    assert_eq!(objections(&world, &incoming(&[])), [SKEW, SKEW, "", ""]);
    assert_eq!(
        objections(&world, &incoming(&["hash"])),
        ["", "", SKEW, SKEW]
    );
    assert_eq!(
        objections(&world, &incoming(&["unknown"])),
        [SKEW, SKEW, "", ""]
    );
}

fn spread_scores(nodes: &[NodeB], placed: &[PodB], incoming: &PodB) -> Vec<i64> {
    let profile = only(Plugin::PodTopologySpread);
    scores(world(nodes, placed, &[]), profile, incoming)
}

/// Upstream's `TestPodTopologySpreadScore`. Nodes that are not candidates are cordoned.
#[test]
fn constraints_that_may_be_violated_lower_scores() {
    let soft = |max_skew, key| foo().spread_softly(max_skew, key, "foo");
    let abcd = || plain(&["a", "b", "c", "d"]);
    let without_last = |mut nodes: Vec<NodeB>, last: usize| {
        let from = nodes.len() - last;
        for node in &mut nodes[from..] {
            *node = node.clone().cordoned();
        }
        nodes
    };
    let mut unlabeled = without_last(plain(&["a", "b", "x", "y"]), 1);
    unlabeled[1] = node("b").labels("n=b");
    // a and x are candidates, b and y are not.
    let mut ax = four();
    for n in [1, 3] {
        ax[n] = ax[n].clone().cordoned();
    }
    let two_one_none_three = "a:foo a:foo b:foo d:foo d:foo d:foo";
    let four_to_one = "a:foo a:foo a:foo a:foo b:foo b:foo b:foo c:foo c:foo d:foo";
    let four_two = "a:foo a:foo a:foo a:foo b:foo b:foo x:foo y:foo y:foo y:foo";
    let both = |pod: PodB, first: &str, second: &str| {
        pod.spread_softly(1, "zone", first)
            .spread_softly(1, HOSTNAME, second)
    };
    let cases: Vec<Case<&[i64]>> = vec![
        (plain(&["a", "b"]), vec![], soft(1, HOSTNAME), &[100, 100]),
        (
            without_last(plain(&["a", "b"]), 1),
            placed("a:foo a:foo b:foo"),
            soft(1, HOSTNAME),
            &[100],
        ),
        (
            plain(&["a", "b"]),
            placed("a:foo b:foo"),
            soft(1, HOSTNAME),
            &[100, 100],
        ),
        (
            abcd(),
            placed(two_one_none_three),
            soft(1, HOSTNAME),
            &[20, 60, 100, 0],
        ),
        (
            abcd(),
            placed(two_one_none_three),
            foo().spread_softly(1, HOSTNAME, "-"),
            &[100, 100, 100, 100],
        ),
        (
            abcd(),
            placed(two_one_none_three),
            soft(2, HOSTNAME),
            &[33, 66, 100, 16],
        ),
        (
            abcd(),
            placed(four_to_one),
            soft(3, HOSTNAME),
            &[44, 66, 77, 100],
        ),
        (
            without_last(plain(&["a", "b", "x", "y"]), 1),
            placed(four_two),
            soft(1, HOSTNAME),
            &[33, 83, 100],
        ),
        (
            unlabeled,
            placed(four_two),
            soft(1, HOSTNAME),
            &[16, 0, 100],
        ),
        (
            without_last(four(), 1),
            placed(four_two),
            soft(1, "zone"),
            &[75, 75, 100],
        ),
        (
            ax.clone(),
            placed("a:foo a:foo b:foo x:foo x:foo y:foo y:foo y:foo y:foo"),
            both(foo(), "foo", "foo"),
            &[100, 63],
        ),
        (
            ax,
            placed("a:foo+bar a:foo b:foo+bar y:foo y:foo+bar y:foo"),
            foo()
                .labels("bar")
                .spread_softly(1, "zone", "foo")
                .spread_softly(1, "zone", "bar"),
            &[85, 100],
        ),
    ];
    // Pods on nodes that the Pod's affinity excludes do not count.
    let elsewhere = soft(1, "zone").wants("node notin (b)");
    let found = spread_scores(&four(), &placed("b:foo b:foo x:foo"), &elsewhere);
    assert_eq!(found, [100, 0, 0]);
    // As upstream, each node has its own Pods, although others have the same host name.
    let same = plain(&["a", "b"]).into_iter();
    let same: Vec<_> = same
        .map(|node| node.labels(&format!("{HOSTNAME}=same")))
        .collect();
    let found = spread_scores(&same, &placed("a:foo a:foo"), &soft(1, HOSTNAME));
    assert_eq!(found, [0, 100]);
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        assert_eq!(
            spread_scores(&nodes, &placed, &incoming),
            expected,
            "case {n}"
        );
    }
}

/// Upstream's cases of the system defaults: Pods of a Service or a ReplicaSet are spread over nodes and zones.
#[test]
fn pods_of_a_service_or_a_controller_are_spread_by_default() {
    let four_to_one = "a:foo a:foo a:foo a:foo b:foo b:foo b:foo c:foo c:foo d:foo";
    let nodes = plain(&["a", "b", "c", "d"]);
    let profile = || only(Plugin::PodTopologySpread);
    let mut served = world(&nodes, &placed(four_to_one), &[]);
    let mut service = ServiceView::default();
    service.meta.key.namespace = "default".into();
    service.selector.insert("foo".into(), String::new());
    let services = vec![Arc::new(service)];
    served.services = [("default".to_owned(), services)].into();
    assert_eq!(scores(served, profile(), &foo()), [44, 66, 77, 100]);

    let owned = |pods: Vec<PodB>, kind: &str| {
        let pods = pods.into_iter();
        pods.map(|pod| pod.owned(kind, "set")).collect::<Vec<_>>()
    };
    for (kind, expected) in [
        ("ReplicaSet", [44, 66, 77, 100]),
        ("ReplicationController", [44, 66, 77, 100]),
        ("StatefulSet", [44, 66, 77, 100]),
        ("Job", [0, 0, 0, 0]),
    ] {
        let placed = owned(placed(four_to_one), kind);
        let incoming = foo().owned(kind, "set");
        assert_eq!(
            spread_scores(&nodes, &placed, &incoming),
            expected,
            "{kind}"
        );
        let other = foo().owned(kind, "other");
        assert!(
            spread_scores(&nodes, &placed, &other)
                .iter()
                .all(|score| score % 100 == 0),
            "{kind}"
        );
    }
    assert_eq!(spread_scores(&nodes, &placed(four_to_one), &foo()), [0; 4]);
}
