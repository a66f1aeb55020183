//! Plan: the best node for each Pod in order; each decision includes those before it. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_controller::{Plan, Step};
use setpoint_task::catch_unwind;

use crate::anti_affinity::Existing;
use crate::filter::{FilterReason, reasons};
use crate::pod::{PodView, Wants};
use crate::score::{Most, score};
use crate::snapshot::{NodeInfo, Snapshot};

/// One idempotent write.
#[derive(Clone, Debug)]
pub enum Action {
    /// Binds the Pod to a node.
    Bind {
        /// The Pod, which has no node.
        pod: Arc<PodView>,
        /// The name of the node.
        node: String,
        /// The score of the node.
        score: i64,
    },
    /// Writes the reason why no node fits into the condition of the Pod.
    MarkUnschedulable {
        /// The Pod, which has no node.
        pod: Arc<PodView>,
        /// The message of the condition, in upstream's words.
        message: String,
        /// The reasons against each node, for some of the nodes.
        against: Vec<(String, Vec<FilterReason>)>,
    },
}

/// The maximum number of nodes whose reasons are listed.
const TOLD: usize = 32;

impl Action {
    /// Returns the Pod.
    pub fn pod(&self) -> &Arc<PodView> {
        match self {
            Self::Bind { pod, .. } | Self::MarkUnschedulable { pod, .. } => pod,
        }
    }
}

/// Decides on every pending Pod. One that is being deleted, is gated or has a node gets no decision, nor does one whose
/// decision panics.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    plan_by(snapshot, decide)
}

type Decide = fn(&Snapshot, &mut [NodeInfo], &Arc<PodView>, &Wants, u64) -> Step<Action>;

fn plan_by(snapshot: &Snapshot, decide: Decide) -> Plan<Action> {
    let mut plan = Plan::default();
    let mut nodes = snapshot.nodes.clone();
    let mut undecided = Vec::new();
    for pod in &snapshot.pending {
        let Some(wants) = pod.schedulable() else {
            continue;
        };
        match catch_unwind("schedule", || retry(snapshot, &mut nodes, pod, wants)) {
            Ok(Some(step)) => plan.steps.push(step),
            Ok(None) => undecided.push((pod, wants)),
            Err(_) => {}
        }
    }
    for (n, (pod, wants)) in undecided.into_iter().enumerate() {
        let tie = snapshot.seed.wrapping_add(n as u64);
        let decided = catch_unwind("schedule", || decide(snapshot, &mut nodes, pod, wants, tie));
        plan.steps.extend(decided);
    }
    plan
}

/// Binds a Pod with an assumed binding to the same node again, so that the outcome of the first binding does not matter. If
/// the node no longer fits, its resources stay reserved.
fn retry(
    snapshot: &Snapshot,
    nodes: &mut [NodeInfo],
    pod: &Arc<PodView>,
    wants: &Wants,
) -> Option<Step<Action>> {
    let assumed = snapshot.assumed.get(&pod.meta.key)?;
    let node = nodes.iter_mut().find(|node| node.view.name() == assumed)?;
    let fits = reasons(pod, &wants.node, node, &snapshot.existing).is_empty();
    node.take(pod);
    fits.then(|| Step {
        action: bind(pod, node, 0),
        because: "its binding was not answered",
    })
}

fn decide(
    snapshot: &Snapshot,
    nodes: &mut [NodeInfo],
    pod: &Arc<PodView>,
    wants: &Wants,
    tie: u64,
) -> Step<Action> {
    match best(pod, wants, nodes, &snapshot.existing, tie) {
        Ok((n, score)) => {
            nodes[n].take(pod);
            Step {
                action: bind(pod, &nodes[n], score),
                because: "the best of the nodes that fit",
            }
        }
        Err(message) => Step {
            action: Action::MarkUnschedulable {
                pod: pod.clone(),
                message,
                against: against(pod, wants, nodes, &snapshot.existing),
            },
            because: "no node fits",
        },
    }
}

fn bind(pod: &Arc<PodView>, node: &NodeInfo, score: i64) -> Action {
    Action::Bind {
        pod: pod.clone(),
        node: node.view.name().to_owned(),
        score,
    }
}

fn against(
    pod: &PodView,
    wants: &Wants,
    nodes: &[NodeInfo],
    existing: &[Existing],
) -> Vec<(String, Vec<FilterReason>)> {
    let told = nodes.iter().take(TOLD);
    told.map(|node| {
        let name = node.view.name().to_owned();
        (name, reasons(pod, &wants.node, node, existing))
    })
    .collect()
}

/// Returns the index and the score of the best node, or the message why no node fits.
fn best(
    pod: &PodView,
    wants: &Wants,
    nodes: &[NodeInfo],
    existing: &[Existing],
    tie: u64,
) -> Result<(usize, i64), String> {
    let mut fitting = Vec::new();
    let mut against = BTreeMap::new();
    for (n, node) in nodes.iter().enumerate() {
        match reasons(pod, &wants.node, node, existing) {
            none if none.is_empty() => fitting.push(n),
            some => some
                .into_iter()
                .for_each(|one| *against.entry(one).or_default() += 1),
        }
    }
    let most = Most::among(pod, fitting.iter().map(|&n| &nodes[n]));
    let rank = |&n: &usize| (score(pod, &nodes[n], most), tie_break(n as u64, tie));
    fitting
        .into_iter()
        .max_by_key(rank)
        .map(|n| (n, score(pod, &nodes[n], most)))
        .ok_or_else(|| sentence(nodes.len(), &against))
}

/// Returns a hash of the node's index and the seed, which breaks ties evenly and, for a seed, repeatably.
fn tie_break(n: u64, tie: u64) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (n ^ tie).wrapping_mul(MIX);
    mixed.rotate_left(32).wrapping_mul(MIX)
}

fn sentence(nodes: usize, against: &BTreeMap<FilterReason, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<_> = against
        .iter()
        .map(|(objection, count)| format!("{count} {objection}"))
        .collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use setpoint_model::{Key, Meta};

    use super::*;
    use crate::node::NodeView;

    fn pod(name: &str) -> Arc<PodView> {
        let meta = Meta {
            key: Key::new("default", name),
            ..Meta::default()
        };
        Arc::new(PodView {
            meta,
            wants: Some(Box::default()),
            ..PodView::default()
        })
    }

    #[test]
    fn a_pod_on_which_deciding_panics_costs_the_others_nothing() {
        let node = NodeView {
            meta: Meta {
                key: Key::new("", "a"),
                ..Meta::default()
            },
            max_pods: 10,
            ..NodeView::default()
        };
        let snapshot = Snapshot {
            nodes: vec![NodeInfo::new(Arc::new(node))],
            pending: ["first", "poison", "last"].map(pod).into(),
            existing: Vec::new(),
            assumed: std::collections::HashMap::new(),
            seed: 0,
            now: Timestamp::UNIX_EPOCH,
        };
        let steps = plan_by(&snapshot, |snapshot, nodes, pod, wants, tie| {
            assert_ne!(pod.meta.key.name, "poison");
            decide(snapshot, nodes, pod, wants, tie)
        });
        let steps = steps.steps.iter();
        let decided: Vec<_> = steps
            .map(|step| &*step.action.pod().meta.key.name)
            .collect();
        assert_eq!(decided, ["first", "last"]);
    }
}
