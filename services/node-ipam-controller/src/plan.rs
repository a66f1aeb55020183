//! Plan: gives the lowest free ranges to the Nodes that have none.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_model::{Cidr, Meta, Target};

use crate::{NodeView, Pool};

/// The largest number of steps of one plan; the next reconcile continues.
const STEPS: usize = 100;
/// The time after which a plan continues whose steps need not change anything.
const PAUSE: Duration = Duration::from_millis(10);

/// Everything that the decision depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The metadata of the one key that stands for all Nodes.
    pub meta: Meta,
    /// The ranges that nodes can have.
    pub pool: Arc<Pool>,
    /// All Nodes, in any order.
    pub nodes: Vec<Candidate>,
}

/// A Node, and what this leader has done about it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The Node, as the cache has it.
    pub node: Arc<NodeView>,
    /// The range that was planned for it while it had none: a write of it may still be under way. It stays planned,
    /// unless somebody else has given it to another Node.
    pub reserved: Option<Cidr>,
    /// Whether its Event `CIDRNotAvailable` was recorded.
    pub told: bool,
}

/// One step for one Node, which is the one that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set its range, if it has none.
    Assign {
        /// The Node.
        node: Target,
        /// The range.
        range: Cidr,
        /// The number of ranges that were looked at, for metrics.
        tries: usize,
    },
    /// Record that there is no range for it.
    Report {
        /// The Node.
        node: Target,
    },
}

/// Plans for all Nodes, in time linear in their number and that of ranges. Nodes whose last write has failed come last,
/// so that they hold up no others.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.pool.ranges().is_empty() {
        return plan;
    }
    let assigned = world
        .nodes
        .iter()
        .flat_map(|one| one.node.ranges.iter().copied());
    let planned = world.nodes.iter().filter_map(|one| one.reserved);
    let occupied = world.pool.occupied(assigned.clone().chain(planned));
    let assigned = world.pool.occupied(assigned);
    let reserved = |one: &Candidate| {
        let planned = one.reserved?;
        (!world.pool.is_used(&assigned, planned)).then_some((planned, 1))
    };
    let mut free = world.pool.free(&occupied);
    let mut waiting: Vec<_> = world.nodes.iter().filter(|one| needs_range(one)).collect();
    waiting.sort_by_key(|one| (one.reserved.is_some(), &one.node.meta.key.name));
    for one in waiting {
        if plan.steps.len() >= STEPS {
            plan.look_again(PAUSE);
            break;
        }
        let node = Target::of(&one.node.meta);
        let found = reserved(one).or_else(|| free.next());
        match found {
            Some((range, tries)) => {
                let action = Action::Assign { node, range, tries };
                plan.step(action, "it has no range of Pod addresses");
            }
            None if one.told => {}
            None => plan.step(Action::Report { node }, "all ranges are in use"),
        }
    }
    plan
}

fn needs_range(one: &Candidate) -> bool {
    !one.node.assigned && !one.node.meta.deleting
}
