//! Scores of nodes by the strategies of NodeResourcesFit. The cases are those of upstream's tests.

use setpoint_scheduler::{
    Plugin, Profile, ResourceWeight, Shape, ShapePoint, Strategy, StrategyType,
};

use crate::world::{Case, NodeB, PodB, node, only, pod, scores, world};

const FOO: &str = "intel.com/foo";
const BAR: &str = "intel.com/bar";

fn by(kind: StrategyType, resources: &[(&str, i64)]) -> Profile {
    let resources = resources.iter();
    let resources = resources.map(|(name, weight)| ResourceWeight::new(name, *weight));
    Profile {
        strategy: Strategy {
            kind,
            resources: resources.collect(),
        },
        ..only(Plugin::NodeResourcesFit)
    }
}

fn ratio(points: &[(i64, i64)]) -> StrategyType {
    let points = points.iter();
    let points = points.map(|&(utilization, score)| ShapePoint { utilization, score });
    StrategyType::RequestedToCapacityRatio(Shape::new(&points.collect::<Vec<_>>()))
}

fn sized(name: &str, cpu: &str, memory: &str) -> NodeB {
    node(name).has("cpu", cpu).has("memory", memory)
}

fn wants(cpu: &str, memory: &str) -> PodB {
    pod("p").requests(&[("cpu", cpu), ("memory", memory)])
}

/// A Pod that wants 3 CPUs, 5000 bytes and some of [`FOO`], in one container.
fn and_foo(amount: &str) -> PodB {
    pod("p").requests(&[("cpu", "3"), ("memory", "5000"), (FOO, amount)])
}

/// A Pod without containers: it requests nothing, and no amounts are assumed.
fn empty() -> PodB {
    pod("p")
}

const BOTH: &[(&str, i64)] = &[("cpu", 1), ("memory", 1)];

/// Upstream's `TestMostAllocatedScoringStrategy`.
#[test]
fn nodes_with_little_left_are_preferred_by_most_allocated() {
    let on = |node: &str, cpu: &str, memory: &str| wants(cpu, memory).on(node);
    let assumed = || pod("p").image("i");
    let with = |node: NodeB, amount: &str| node.has(FOO, amount);
    type Resources = &'static [(&'static str, i64)];
    let three: Resources = &[("cpu", 1), ("memory", 1), (FOO, 1)];
    let cases: Vec<(Resources, Case<[i64; 2]>)> = vec![
        (
            BOTH,
            (
                vec![sized("a", "4", "10000"), sized("b", "4", "10000")],
                vec![],
                empty(),
                [0, 0],
            ),
        ),
        (
            BOTH,
            (
                vec![sized("a", "4", "10000"), sized("b", "6", "10000")],
                vec![],
                wants("3", "5000"),
                [62, 50],
            ),
        ),
        (
            BOTH,
            (
                vec![sized("a", "10", "20000"), sized("b", "10", "20000")],
                vec![
                    on("a", "3", "0"),
                    on("a", "3", "0"),
                    on("b", "3", "0"),
                    on("b", "3", "5000"),
                ],
                empty(),
                [30, 42],
            ),
        ),
        (
            BOTH,
            (
                vec![sized("a", "10", "20000"), sized("b", "10", "20000")],
                vec![on("a", "3", "0"), on("b", "3", "5000")],
                wants("3", "5000"),
                [42, 55],
            ),
        ),
        (
            BOTH,
            (
                vec![sized("a", "5", "10000"), sized("b", "10", "9000")],
                vec![],
                wants("5", "9000"),
                [95, 75],
            ),
        ),
        (
            &[("memory", 2), ("cpu", 1)][..],
            (
                vec![sized("a", "4", "10000"), sized("b", "6", "10000")],
                vec![],
                wants("3", "5000"),
                [58, 50],
            ),
        ),
        (
            BOTH,
            (
                vec![sized("a", "250m", "1000Mi"), sized("b", "250m", "1000Mi")],
                vec![assumed().on("a"), assumed().on("a")],
                assumed(),
                [80, 30],
            ),
        ),
        (
            three,
            (
                vec![
                    sized("a", "6", "10000"),
                    with(sized("b", "6", "10000"), "4"),
                ],
                vec![],
                wants("3", "5000"),
                [50, 50],
            ),
        ),
        (
            three,
            (
                vec![
                    with(sized("a", "6", "10000"), "4"),
                    with(sized("b", "6", "10000"), "10"),
                ],
                vec![],
                and_foo("2"),
                [50, 40],
            ),
        ),
        (
            &[(FOO, 2), ("cpu", 1), ("memory", 1)][..],
            (
                vec![
                    sized("a", "6", "10000"),
                    with(sized("b", "6", "10000"), "4"),
                ],
                vec![],
                wants("3", "4000"),
                [45, 45],
            ),
        ),
    ];
    for (n, (resources, (nodes, placed, incoming, expected))) in cases.into_iter().enumerate() {
        let profile = by(StrategyType::MostAllocated, resources);
        let found = scores(world(&nodes, &placed, &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// Upstream's `TestLeastAllocatedScoringStrategy`: the cases with weights and with extended resources.
#[test]
fn resources_are_weighed_by_least_allocated() {
    let with = |amount: &str| sized("n", "6", "10000").has(FOO, amount);
    let weighed = by(StrategyType::LeastAllocated, &[("memory", 2), ("cpu", 1)]);
    let nodes = [sized("a", "4", "10000"), sized("b", "6", "10000")];
    let found = scores(world(&nodes, &[], &[]), weighed, &wants("3", "5000"));
    assert_eq!(found, [41, 50]);
    let three = by(
        StrategyType::LeastAllocated,
        &[("cpu", 1), ("memory", 1), (FOO, 1)],
    );
    let found = |pod| scores(world(&[with("10")], &[], &[]), three.clone(), &pod);
    assert_eq!(found(wants("3", "5000")), [50]);
    assert_eq!(found(and_foo("2")), [60]);
    assert_eq!(found(and_foo("0")), [50], "it requests none");
}

/// Upstream's `TestRequestedToCapacityRatioScoringStrategy`.
#[test]
fn a_shape_that_falls_prefers_nodes_with_much_left() {
    let shape = || by(ratio(&[(0, 10), (100, 0)]), BOTH);
    let cases: Vec<Case<[i64; 2]>> = vec![
        (
            vec![sized("a", "4", "10000"), sized("b", "4", "10000")],
            vec![],
            empty(),
            [100, 100],
        ),
        (
            vec![sized("a", "4", "10000"), sized("b", "6", "10000")],
            vec![],
            wants("3", "5000"),
            [38, 50],
        ),
        (
            vec![sized("a", "4", "10000"), sized("b", "6", "10000")],
            vec![wants("3", "5000").on("a"), wants("3", "5000").on("b")],
            empty(),
            [38, 50],
        ),
    ];
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let found = scores(world(&nodes, &placed, &[]), shape(), &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// Upstream's `TestResourceBinPackingSingleExtended` and `TestResourceBinPackingMultipleExtended`.
#[test]
fn a_shape_that_rises_packs_extended_resources() {
    let has = |name: &str, foo: &str, bar: &str| node(name).has(FOO, foo).has(BAR, bar);
    let both = |foo: &str, bar: &str| pod("p").requests(&[(FOO, foo), (BAR, bar)]);
    let nodes = [has("a", "8", "4"), has("b", "4", "8")];
    let rising = || ratio(&[(0, 0), (100, 1)]);
    let single = || by(rising(), &[(FOO, 1)]);
    let multiple = || by(rising(), &[(FOO, 3), (BAR, 5)]);
    let foo = |amount: &str| pod("p").requests(&[(FOO, amount)]);
    let cases = [
        (single(), vec![], empty(), [0, 0]),
        (single(), vec![], foo("2"), [2, 5]),
        (single(), vec![foo("2").on("b")], foo("2"), [2, 10]),
        (single(), vec![], foo("4"), [5, 10]),
        (multiple(), vec![], empty(), [0, 0]),
        (multiple(), vec![], both("2", "2"), [4, 3]),
        (
            multiple(),
            vec![both("2", "2").on("b")],
            both("2", "2"),
            [4, 7],
        ),
        (multiple(), vec![], both("4", "2"), [5, 5]),
    ];
    for (n, (profile, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let found = scores(world(&nodes, &placed, &[]), profile, &incoming);
        assert_eq!(found, expected, "case {n}");
    }
}

/// As upstream, whose `buildRequestedToCapacityRatioScorerFunction` skips them.
#[test]
fn resources_with_a_score_of_0_in_a_shape_do_not_count() {
    let shape = by(ratio(&[(0, 0), (100, 1)]), &[(FOO, 3), (BAR, 5)]);
    let nodes = [node("a").has(FOO, "4").has(BAR, "1000")];
    let incoming = pod("p").requests(&[(FOO, "2"), (BAR, "1")]);
    assert_eq!(scores(world(&nodes, &[], &[]), shape, &incoming), [5]);
}
