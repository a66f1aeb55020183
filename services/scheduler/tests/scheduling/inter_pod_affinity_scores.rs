//! InterPodAffinity: scores. The cases are those of upstream's tests.

use setpoint_proto::core::PodAffinityTerm;

use crate::inter_pod_affinity::hosts;
use setpoint_scheduler::Plugin;

use crate::world::{
    Case, PodB, node, only, parse_labels, parse_selector, pod, scores, term, world,
};

fn web() -> PodB {
    pod("web")
}

/// Checks F5: upstream's `TestPreferredAffinity` and `TestPreferredAffinityWithHardPodAffinitySymmetricWeight`.
#[test]
fn preferred_terms_and_those_of_others_raise_and_lower_scores() {
    let s1 = |name: &str, node: &str| pod(name).labels("security=S1").on(node);
    let s2 = |name: &str, node: &str| pod(name).labels("security=S2").on(node);
    let incoming = || web().labels("security=S1");
    let with_s1 = |pod: PodB| pod.likes(5, "region", "security=S1");
    let with_s2 = |pod: PodB| pod.likes(6, "region", "security=S2");
    let not_s1 = |pod: PodB| pod.likes(-5, "az", "security=S1");
    let not_s2 = |pod: PodB| pod.likes(-5, "az", "security=S2");
    let both = |pod: PodB| {
        pod.likes(8, "region", "security=S1")
            .likes(-5, "az", "security=S2")
    };
    let hard = |pod: PodB| {
        pod.near("region", "security in (S1, value2)")
            .near("region", "security,!wrongkey")
    };
    let three = || hosts(&["region=China", "region=India", "az=az1"]);
    let five = |first: &str| {
        let labels = [
            first,
            "region=India",
            "region=China",
            "region=China",
            "region=India",
        ];
        let nodes = ["n1", "n2", "n3", "n4", "n5"].iter().zip(labels);
        nodes
            .map(|(name, labels)| node(name).labels(labels))
            .collect::<Vec<_>>()
    };
    let cases: Vec<Case<&[i64]>> = vec![
        (
            three(),
            vec![s1("1", "nodeA"), s2("2", "nodeB"), s1("3", "nodeC")],
            web().labels("security=S1"),
            &[0, 0, 0],
        ),
        (
            three(),
            vec![s1("1", "nodeA"), s2("2", "nodeB"), s1("3", "nodeC")],
            with_s1(incoming()),
            &[100, 0, 0],
        ),
        (
            hosts(&["region=China", "region=China,az=az1", "region=India"]),
            vec![s1("1", "nodeA")],
            with_s1(web()),
            &[100, 100, 0],
        ),
        (
            five("region=China"),
            vec![
                s2("1", "n1"),
                s2("2", "n1"),
                s2("3", "n2"),
                s2("4", "n3"),
                s2("5", "n4"),
                s2("6", "n5"),
            ],
            with_s2(web().labels("security=S2")),
            &[100, 0, 100, 100, 0],
        ),
        (
            three(),
            vec![s1("1", "nodeA"), s2("2", "nodeB"), s1("3", "nodeC")],
            incoming()
                .likes(8, "region", "security!=S1,security=S2")
                .likes(2, "region", "security,!wrongkey"),
            &[20, 100, 0],
        ),
        // The terms of others.
        (
            three(),
            vec![with_s1(s1("1", "nodeA")), with_s2(s2("2", "nodeB"))],
            web().labels("security=S2"),
            &[0, 100, 0],
        ),
        (
            three(),
            vec![hard(s1("1", "nodeA")), hard(s2("2", "nodeB"))],
            incoming(),
            &[100, 100, 0],
        ),
        // Anti-affinity.
        (
            hosts(&["az=az1", "region=China"]),
            vec![s1("1", "nodeA"), s2("2", "nodeB")],
            not_s1(incoming()),
            &[0, 100],
        ),
        (
            hosts(&["az=az1", "region=China"]),
            vec![s1("1", "nodeA"), s1("2", "nodeB")],
            not_s1(incoming()),
            &[0, 100],
        ),
        (
            hosts(&["az=az1", "region=India"]),
            vec![s1("1", "nodeA"), s1("2", "nodeA"), s2("3", "nodeB")],
            not_s1(incoming()),
            &[0, 100],
        ),
        (
            hosts(&["az=az1", "az=az2"]),
            vec![not_s2(s1("1", "nodeA")), not_s1(s2("2", "nodeB"))],
            web().labels("security=S2"),
            &[0, 100],
        ),
        // Both.
        (
            hosts(&["region=China", "az=az1"]),
            vec![s1("1", "nodeA"), s1("2", "nodeB")],
            both(incoming()),
            &[100, 0],
        ),
        (
            five("region=China,az=az1"),
            vec![
                s1("1", "n1"),
                s1("2", "n1"),
                s1("3", "n2"),
                s1("4", "n3"),
                s1("5", "n3"),
                s1("6", "n4"),
                s1("7", "n5"),
            ],
            both(incoming()),
            &[100, 0, 100, 100, 0],
        ),
        (
            {
                let labels = ["region=China", "az=az1", "region=India", "az=az2"];
                let nodes = ["n1", "n2", "n3", "n4"].iter().zip(labels);
                nodes
                    .map(|(name, labels)| node(name).labels(labels))
                    .collect()
            },
            vec![
                s1("1", "n1"),
                s2("2", "n2"),
                both(pod("3").on("n3")),
                not_s1(pod("4").on("n4")),
            ],
            both(incoming()),
            &[100, 0, 100, 0],
        ),
        (
            hosts(&["region=China", "region=China"]),
            vec![s1("1", "nodeA"), both(pod("2").on("nodeB"))],
            incoming(),
            &[0, 0],
        ),
        (
            three(),
            vec![both(s1("1", "nodeA")), with_s2(s2("2", "nodeB"))],
            web().labels("security=S2"),
            &[0, 100, 0],
        ),
    ];
    for (n, (nodes, placed, incoming, expected)) in cases.into_iter().enumerate() {
        let profile = only(Plugin::InterPodAffinity);
        let scores = scores(world(&nodes, &placed, &[]), profile, &incoming);
        assert_eq!(scores, expected, "case {n}");
    }
}

/// Upstream's cases with namespace selectors.
#[test]
fn preferred_terms_select_namespaces_by_their_labels() {
    let team = |pod: PodB, weight| {
        let term = PodAffinityTerm {
            namespace_selector: parse_selector("team=team1"),
            namespaces: vec!["subteam2.team2".into()],
            ..term("region", "security=S1")
        };
        pod.likes_term(weight, term).labels("security=S1")
    };
    let incoming = |weight| team(web().namespace("subteam1.team1"), weight);
    let placed = |name: &str, namespace: &str, node: &str| {
        let pod = pod(name).namespace(namespace).on(node);
        pod.labels("security=S1")
    };
    let three = |third: &str| {
        vec![
            placed("1", "subteam1.team1", "nodeA"),
            placed("2", "subteam1.team1", "nodeA"),
            placed("3", third, "nodeA"),
            placed("4", "subteam2.team1", "nodeB"),
        ]
    };
    let symmetric = |weight| vec![team(pod("1").namespace("other").on("nodeA"), weight)];
    let cases = [
        (three("subteam1.team2"), incoming(5), [100, 0]),
        (three("subteam2.team2"), incoming(5), [100, 0]),
        (three("subteam1.team2"), incoming(-5), [0, 100]),
        (three("subteam2.team2"), incoming(-5), [0, 100]),
        (symmetric(5), placed("p", "subteam1.team1", ""), [100, 0]),
        (symmetric(-5), placed("p", "subteam1.team1", ""), [0, 100]),
        (symmetric(5), placed("p", "subteam1.team2", ""), [0, 0]),
    ];
    for (n, (placed, incoming, expected)) in cases.into_iter().enumerate() {
        let mut world = world(&hosts(&["region=China", "region=India"]), &placed, &[]);
        world.namespaces = ["subteam1.team1", "subteam2.team1"]
            .map(|name| (name.to_owned(), parse_labels("team=team1")))
            .into();
        let profile = only(Plugin::InterPodAffinity);
        assert_eq!(scores(world, profile, &incoming), expected, "case {n}");
    }
}

#[test]
fn the_required_affinity_of_others_counts_by_its_weight() {
    let hard = pod("1").labels("a").on("nodeA").near("region", "a");
    let nodes = hosts(&["region=China", "region=India"]);
    for (weight, expected) in [(1, [100, 0]), (0, [0, 0])] {
        let mut profile = only(Plugin::InterPodAffinity);
        profile.hard_pod_affinity = weight;
        let world = world(&nodes, std::slice::from_ref(&hard), &[]);
        assert_eq!(scores(world, profile, &web().labels("a")), expected);
    }
}
