//! Tests of the pure parts of the node-ipam-controller.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use proptest::prelude::*;
use setpoint_controller::{Plan, View as _};
use setpoint_model::{Cidr, Meta};
use setpoint_node_ipam_controller::{Action, Candidate, NodeIpam, NodeView, Pool, World, plan};
use setpoint_proto::core::Node;

use crate::settings::settings;

/// Returns a Node; without a range if that is empty. Its uid is its name.
pub fn node(name: &str, range: &str) -> Candidate {
    let mut node = Node::default();
    (node.metadata.name, node.metadata.uid) = (name.into(), name.into());
    if !range.is_empty() {
        node.spec.pod_cidr = range.into();
        node.spec.pod_cidrs = vec![range.into()];
    }
    Candidate {
        node: Arc::new(NodeView::of(node)),
        reserved: None,
        told: false,
    }
}

pub fn world(settings: &NodeIpam, nodes: Vec<Candidate>) -> World {
    World {
        meta: Meta::default(),
        pool: Arc::new(Pool::new(settings)),
        nodes,
    }
}

/// Returns the Nodes of the plan with their ranges, or `none`, in order.
pub fn planned(plan: &Plan<Action>) -> Vec<(String, String)> {
    let steps = plan.steps.iter().map(|step| match &step.action {
        Action::Assign { node, range, .. } => (node.key.name.clone(), range.prefixed()),
        Action::Report { node } => (node.key.name.clone(), "none".to_owned()),
    });
    steps.collect()
}

fn pairs(plan: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, range): &(&str, &str)| ((*name).to_owned(), (*range).to_owned());
    plan.iter().map(owned).collect()
}

#[test]
fn a_node_gets_the_lowest_range_that_overlaps_no_other() {
    let two = settings(&["10.9.0.0/23", "10.1.0.0/22"], 24);
    let nodes = vec![
        node("c", ""),
        node("b", "10.9.0.128/25"),
        node("a", ""),
        node("e", "10.1.2.0/23"),
        node("d", ""),
        node("foreign", "192.168.0.0/24"),
        node("other family", "fd00::/64"),
    ];
    let decided = plan(&world(&two, nodes));
    let expected = [
        ("a", "10.9.1.0/24"),
        ("c", "10.1.0.0/24"),
        ("d", "10.1.1.0/24"),
    ];
    assert_eq!(planned(&decided), pairs(&expected));
    let tries = decided.steps.iter().map(|step| match step.action {
        Action::Assign { tries, .. } => tries,
        Action::Report { .. } => 0,
    });
    assert_eq!(tries.collect::<Vec<_>>(), [2, 1, 1]);
}

#[test]
fn a_plan_names_nodes_and_ranges() {
    let one = settings(&["10.244.0.0/24"], 24);
    let decided = plan(&world(&one, vec![node("a", ""), node("b", "")]));
    let expected = "\
        Assign { node: a, range: 10.244.0.0/24, tries: 1 } because it has no range of Pod addresses\n\
        Report { node: b } because all ranges are in use\n";
    assert_eq!(decided.to_string(), expected);
}

#[test]
fn the_ranges_of_services_are_left_out() {
    let mut one = settings(&["10.96.0.0/14"], 16);
    one.service_cidrs = vec![
        "10.96.128.0/17".parse().unwrap(),
        "10.98.0.7".parse().unwrap(),
    ];
    let nodes = ["a", "b", "c"].map(|name| node(name, ""));
    let decided = plan(&world(&one, nodes.into()));
    let expected = [("a", "10.97.0.0/16"), ("b", "10.99.0.0/16"), ("c", "none")];
    assert_eq!(planned(&decided), pairs(&expected));
}

#[test]
fn without_a_free_range_each_node_is_reported_once() {
    let one = settings(&["10.244.0.0/24"], 24);
    let mut nodes = vec![node("a", "10.244.0.0/24"), node("b", ""), node("c", "")];
    let decided = plan(&world(&one, nodes.clone()));
    assert_eq!(planned(&decided), pairs(&[("b", "none"), ("c", "none")]));
    nodes[1].told = true;
    let decided = plan(&world(&one, nodes.clone()));
    assert_eq!(planned(&decided), pairs(&[("c", "none")]));
    nodes.remove(0);
    let decided = plan(&world(&one, nodes));
    let expected = [("b", "10.244.0.0/24"), ("c", "none")];
    assert_eq!(planned(&decided), pairs(&expected));
}

/// The answer to the write of `a` did not arrive.
#[test]
fn a_range_stays_planned_until_the_node_has_one_and_holds_up_no_others() {
    let one = settings(&["10.244.0.0/16"], 24);
    let mut nodes = vec![node("a", ""), node("b", "")];
    nodes[0].reserved = Some("10.244.0.0/24".parse().unwrap());
    let decided = plan(&world(&one, nodes.clone()));
    let expected = [("b", "10.244.1.0/24"), ("a", "10.244.0.0/24")];
    assert_eq!(planned(&decided), pairs(&expected));
    // Somebody else has given it away.
    nodes.push(node("c", "10.244.0.0/25"));
    let decided = plan(&world(&one, nodes));
    let expected = [("b", "10.244.1.0/24"), ("a", "10.244.2.0/24")];
    assert_eq!(planned(&decided), pairs(&expected));
}

#[test]
fn nothing_is_planned_without_ranges_and_for_nodes_that_go() {
    let nodes = vec![node("a", "")];
    assert!(plan(&world(&NodeIpam::default(), nodes)).is_empty());
    let mut leaving = Node::default();
    leaving.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
    let leaving = Candidate {
        node: Arc::new(NodeView::of(leaving)),
        reserved: None,
        told: false,
    };
    let one = settings(&["10.244.0.0/16"], 24);
    assert!(plan(&world(&one, vec![leaving])).is_empty());
}

#[test]
fn five_thousand_nodes_are_decided_on_in_plans_of_a_hundred() {
    let one = settings(&["10.0.0.0/8"], 24);
    let names = |from, to| (from..to).map(|n| node(&format!("n{n:04}"), ""));
    let with = |n: u32| {
        node(
            &format!("m{n}"),
            &format!("10.{}.{}.0/24", n / 256, n % 256),
        )
    };
    let nodes: Vec<_> = (0..4_850).map(with).chain(names(0, 150)).collect();
    let began = std::time::Instant::now();
    let first = plan(&world(&one, nodes.clone()));
    assert!(began.elapsed().as_millis() < 1_000);
    assert_eq!((first.steps.len(), first.again.is_some()), (100, true));
    assert_eq!(
        planned(&first)[0],
        ("n0000".into(), "10.18.242.0/24".into())
    );
    let second = plan(&world(&one, nodes[..4_950].to_vec()));
    assert_eq!((second.steps.len(), second.again), (100, None));
}

fn range_of(step: &Action) -> Option<Cidr> {
    match step {
        Action::Assign { range, .. } => Some(*range),
        Action::Report { .. } => None,
    }
}

/// Nodes with ranges of several sizes, within the cluster's and outside, or none.
fn nodes() -> impl Strategy<Value = Vec<Candidate>> {
    let range = prop_oneof![
        4 => Just(String::new()),
        2 => (0_u8..16, 22_u8..=28).prop_map(|(third, bits)| {
            Cidr::new([10, 244, third, 77].into(), bits).unwrap().prefixed()
        }),
        1 => Just("192.168.0.0/16".to_owned()),
    ];
    let reserved = prop_oneof![3 => Just(None), 1 => (0_u8..16).prop_map(Some)];
    prop::collection::vec((range, reserved), 0..20).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        let mut taken = std::collections::BTreeSet::new();
        let nodes = numbered.map(|(index, (range, reserved))| {
            let mut one = node(&format!("n{index:02}"), &range);
            // The controller itself plans no range twice.
            let reserved = reserved.filter(|third| range.is_empty() && taken.insert(*third));
            one.reserved = reserved.and_then(|third| Cidr::new([10, 244, third, 0].into(), 24));
            one
        });
        nodes.collect()
    })
}

proptest! {
    #[test]
    fn what_is_planned_overlaps_nothing_and_the_order_of_the_cache_does_not_matter(
        nodes in nodes(),
    ) {
        let mut one = settings(&["10.244.0.0/20"], 24);
        one.service_cidrs = vec!["10.244.3.0/24".parse().unwrap()];
        let decided = plan(&world(&one, nodes.clone()));
        let ranges: Vec<_> = decided.steps.iter().filter_map(|it| range_of(&it.action)).collect();
        let whole: Cidr = "10.244.0.0/20".parse().unwrap();
        for (index, range) in ranges.iter().enumerate() {
            prop_assert!(range.is_within(whole) && range.bits() == 24);
            let mut held = nodes.iter().flat_map(|one| one.node.ranges.iter());
            prop_assert!(!held.any(|other| other.overlaps(*range)));
            prop_assert!(!ranges[..index].contains(range));
        }
        // Each Node without a range has exactly one step, and no other Node has one.
        let mut concerned: Vec<_> = planned(&decided).into_iter().map(|(name, _)| name).collect();
        concerned.sort();
        let waiting = nodes.iter().filter(|one| !one.node.assigned);
        let waiting: Vec<_> = waiting.map(|one| one.node.meta.key.name.clone()).collect();
        prop_assert_eq!(concerned, waiting);
        let reversed = nodes.into_iter().rev().collect();
        prop_assert_eq!(plan(&world(&one, reversed)), decided);
    }
}
