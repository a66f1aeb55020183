//! InterPodAffinity: filters. The cases are those of upstream's tests.

use setpoint_proto::core::PodAffinityTerm;

use crate::world::{
    Case, NodeB, PodB, node, objections, parse_labels, parse_selector, pod, term, world,
};

const NEAR: &str = "node(s) didn't match pod affinity rules";
const AWAY: &str = "node(s) didn't match pod anti-affinity rules";
const EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Returns the outcome on the only node with the labels region, zone and node, beside another Pod.
fn beside(other: PodB, incoming: PodB) -> String {
    let nodes = [node("node1").labels("region=r1,zone=z11,node=node1")];
    let mut world = world(&nodes, &[other.on("node1")], &[]);
    world.namespaces = [
        ("subteam1.team1", "team=team1"),
        ("subteam2.team1", "team=team1"),
        ("subteam1.team2", "team=team2"),
    ]
    .map(|(name, labels)| (name.to_owned(), parse_labels(labels)))
    .into();
    objections(&world, &incoming).remove(0)
}

fn scan() -> PodB {
    pod("existing").labels("service=securityscan")
}

fn web() -> PodB {
    pod("web")
}

fn in_team(key: &str, namespaces: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        namespace_selector: parse_selector(namespaces),
        ..term(key, SCAN)
    }
}

const SCAN: &str = "service in (securityscan, value2)";
const VIRUS: &str = "service in (antivirusscan, value2)";

/// Checks F5: upstream's `TestRequiredAffinitySingleNode`.
#[test]
fn required_terms_decide_beside_one_pod() {
    let second = || web().labels("security=S1");
    let elsewhere = || PodAffinityTerm {
        namespaces: vec!["other".into()],
        ..term("region", SCAN)
    };
    let cases = [
        (scan(), web(), ""),
        (scan(), second().near("region", SCAN), ""),
        (
            scan(),
            second().near("region", "service notin (securityscan3, value3)"),
            "",
        ),
        (scan(), second().near_term(elsewhere()), NEAR),
        (scan(), second().near("region", VIRUS), NEAR),
        (
            scan(),
            second()
                .near("region", "service,!wrongkey")
                .near("region", "service=securityscan,service!=WrongValue"),
            "",
        ),
        (
            scan(),
            second()
                .near("region", "service,!wrongkey")
                .near("region", "service=securityscan2,service!=WrongValue"),
            NEAR,
        ),
        (
            scan(),
            second().near("region", SCAN).away("node", VIRUS),
            "",
        ),
        (
            scan().away("node", VIRUS),
            second().near("region", SCAN).away("node", VIRUS),
            "",
        ),
        (
            scan(),
            second().near("region", SCAN).away("zone", SCAN),
            AWAY,
        ),
        (
            scan().away("zone", SCAN),
            scan().near("region", SCAN).away("node", VIRUS),
            EXISTING,
        ),
        (
            scan(),
            scan().near("region", "service notin (securityscan, value2)"),
            NEAR,
        ),
        (scan().away("zone", SCAN), scan(), EXISTING),
        (
            scan().away("zone", "service notin (securityscan, value2)"),
            scan(),
            "",
        ),
        (
            second().away("zone", "security"),
            scan().away("region", "service").away("region", "security"),
            AWAY,
        ),
        (
            second().away("zone", "security"),
            scan().away("zone", "service").away("zone", "security"),
            AWAY,
        ),
        (
            scan().away("zone", "service").away("zone", "security"),
            second().away("zone", "security"),
            EXISTING,
        ),
        (
            web()
                .labels("def,xyz")
                .away("zone", "abc")
                .away("zone", "def"),
            web()
                .labels("abc,xyz")
                .away("zone", "abc")
                .away("zone", "def"),
            AWAY,
        ),
        (
            web()
                .labels("abc,xyz")
                .away("zone", "abc")
                .away("zone", "def"),
            web()
                .labels("def,xyz")
                .away("zone", "abc")
                .away("zone", "def"),
            AWAY,
        ),
        (
            scan().namespace("subteam1.team1"),
            second().near_term(in_team("region", "team=team1")),
            "",
        ),
        (
            scan().namespace("subteam1.team2"),
            second().near_term(in_team("region", "team=team1")),
            NEAR,
        ),
        (
            scan().namespace("subteam2.team1"),
            second()
                .namespace("subteam1.team1")
                .away_term(in_team("zone", "team=team1")),
            AWAY,
        ),
        (
            scan().namespace("subteam2.team1"),
            second()
                .namespace("subteam1.team1")
                .away_term(in_team("zone", "")),
            AWAY,
        ),
        (
            scan().namespace("subteam1.team2"),
            second()
                .namespace("subteam1.team1")
                .away_term(in_team("zone", "team=team1")),
            "",
        ),
    ];
    for (n, (other, incoming, expected)) in cases.into_iter().enumerate() {
        assert_eq!(beside(other, incoming), expected, "case {n}");
    }
}

pub fn hosts(labels: &[&str]) -> Vec<NodeB> {
    let names = ["nodeA", "nodeB", "nodeC"];
    let nodes = names.iter().zip(labels);
    nodes
        .map(|(name, labels)| node(name).labels(labels))
        .collect()
}

/// Checks F5: upstream's `TestRequiredAffinityMultipleNodes`.
#[test]
fn required_terms_hold_in_whole_domains() {
    let regions = || hosts(&["region=China", "region=China,az=az1", "region=India"]);
    let zones = || hosts(&["region=r1,zone=z1", "region=r1,zone=z2"]);
    let third = || {
        hosts(&[
            "region=r1,zone=z1",
            "region=r1,zone=z2",
            "region=r1,zone=z3",
        ])
    };
    let group = || {
        let pod = web().labels("foo=bar,service=securityscan");
        pod.near("zone", "foo=bar")
            .near("zone", "service=securityscan")
    };
    let a = || pod("a").on("nodeA");
    let b = || pod("b").on("nodeB");
    let cases: Vec<Case<&[&str]>> = vec![
        (
            regions(),
            vec![a().labels("foo=bar")],
            web().near("region", "foo=bar"),
            &["", "", NEAR],
        ),
        // The first Pod of a group.
        (
            hosts(&["zone=az1", "zone=az2"]),
            vec![a().labels("foo=bar")],
            group(),
            &["", ""],
        ),
        (
            hosts(&["other=az1", "other=az2"]),
            vec![a().labels("foo=bar")],
            group(),
            &[NEAR, NEAR],
        ),
        (
            hosts(&["region=r1", "region=r1"]),
            vec![a().labels("foo=abc")],
            web().away("region", "foo=abc"),
            &[AWAY, AWAY],
        ),
        (
            zones(),
            vec![a().labels("foo=abc,service=securityscan")],
            web()
                .away("region", "foo=abc")
                .away("zone", "service=securityscan"),
            &[AWAY, AWAY],
        ),
        (
            regions(),
            vec![a().labels("foo=abc")],
            web().away("region", "foo=abc"),
            &[AWAY, AWAY, ""],
        ),
        // The terms of a Pod in another namespace are about that one.
        (
            regions(),
            vec![
                a().labels("foo=bar"),
                pod("c")
                    .on("nodeC")
                    .namespace("NS2")
                    .away("region", "foo=123"),
            ],
            web().labels("foo=123").away("region", "foo=bar"),
            &[AWAY, AWAY, ""],
        ),
        (
            zones(),
            vec![a().away("unknown", "foo")],
            web().labels("foo"),
            &["", ""],
        ),
        (
            zones(),
            vec![a().labels("foo")],
            web().away("unknown", "foo"),
            &["", ""],
        ),
        (
            zones(),
            vec![
                a().away("zone", "foo"),
                pod("a2").on("nodeA").away("region", "bar"),
            ],
            web().labels("foo,bar"),
            &[EXISTING, EXISTING],
        ),
        (
            zones(),
            vec![a().labels("foo"), b().labels("bar")],
            web().away("zone", "foo").away("region", "bar"),
            &[AWAY, AWAY],
        ),
        (
            zones(),
            vec![a().away("unknown", "foo").away("zone", "bar")],
            web().labels("foo,bar"),
            &[EXISTING, ""],
        ),
        (
            zones(),
            vec![a().labels("foo,bar")],
            web().away("unknown", "foo").away("zone", "bar"),
            &[AWAY, ""],
        ),
        (
            zones(),
            vec![a().away("region", "foo").away("zone", "bar")],
            web().labels("foo,bar"),
            &[EXISTING, EXISTING],
        ),
        (
            zones(),
            vec![a().labels("foo,bar")],
            web().away("region", "foo").away("zone", "bar"),
            &[AWAY, AWAY],
        ),
        (
            third(),
            vec![
                a().away("zone", "foo").away("zone", "labelA"),
                b().away("zone", "bar").away("zone", "labelB"),
            ],
            web().labels("foo,bar"),
            &[EXISTING, EXISTING, ""],
        ),
        (
            hosts(&["region=r1,zone=z1", "region=r1,zone=z1"]),
            vec![a().labels("foo,bar")],
            web().near("region", "foo").near("zone", "bar"),
            &["", ""],
        ),
        // One Pod must match all terms.
        (
            zones(),
            vec![a().labels("foo"), b().labels("bar")],
            web().near("region", "foo").near("zone", "bar"),
            &[NEAR, NEAR],
        ),
    ];
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let world = world(&nodes, &placed, &[]);
        assert_eq!(objections(&world, &incoming), expected, "case {n}");
    }
}
