//! The nodes on which preemption is tried.

use crate::preemption::{budget, high, on, small};
use crate::world::{NodeB, PodB, victims, world};

/// Nodes with one Pod each, of which a later one has a lower priority.
fn with_victims(nodes: usize) -> (Vec<NodeB>, Vec<PodB>) {
    let numbers = (0..nodes).rev().zip(1..);
    let one = |(n, priority)| {
        let node = format!("{n:04}");
        (
            small(&node),
            on(&node, &node, "900m", priority).labels("app=foo"),
        )
    };
    numbers.map(one).unzip()
}

/// Checks C7: as upstream, a tenth of the nodes is tried, and at least a hundred, from one that differs each time.
#[test]
fn preemption_tries_a_tenth_of_the_nodes_and_at_least_a_hundred() {
    for (nodes, seed, expected) in [(90, 5, "0089"), (150, 5, "0104"), (1100, 200, "0309")] {
        let (nodes, placed) = with_victims(nodes);
        let mut snapshot = world(&nodes, &placed, &[high("500m")]);
        snapshot.seed = seed;
        assert_eq!(victims(&snapshot), [expected]);
    }
}

/// Checks C7: a search that has only found violations of PodDisruptionBudgets goes on.
#[test]
fn preemption_tries_nodes_until_one_violates_no_budget() {
    let (nodes, mut placed) = with_victims(150);
    let last = placed.first_mut().expect("there are Pods");
    *last = on("0149", "uncovered", "900m", 900);
    let mut snapshot = world(&nodes, &placed, &[high("500m")]);
    snapshot.budgets = vec![budget("app=foo", 0)];
    snapshot.seed = 5;
    assert_eq!(victims(&snapshot), ["uncovered"]);
}
