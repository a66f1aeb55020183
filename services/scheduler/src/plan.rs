//! Plan: the best node for each Pod in turn, each seeing what the ones before it took. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_machinery::Plan;

use crate::anti_affinity::Existing;
use crate::filter::{Objection, objections};
use crate::pod::{PodView, Wants};
use crate::score::{Most, score};
use crate::world::{Candidate, World};

/// One idempotent write.
#[derive(Clone, Debug)]
pub enum Action {
    /// Put the Pod on a node.
    Bind {
        /// Unbound so far.
        pod: Arc<PodView>,
        /// By name.
        node: String,
        /// How good it is.
        score: i64,
    },
    /// Tell the user why the Pod has to wait.
    Refuse {
        /// Still unbound.
        pod: Arc<PodView>,
        /// One sentence, as upstream words it.
        message: String,
        /// What speaks against the nodes one by one, for as many as anybody reads.
        against: Vec<(String, Vec<Objection>)>,
    },
}

/// So many nodes are told one by one.
const TOLD: usize = 32;

impl Action {
    /// The Pod that it is about.
    pub fn pod(&self) -> &Arc<PodView> {
        match self {
            Self::Bind { pod, .. } | Self::Refuse { pod, .. } => pod,
        }
    }
}

/// Decides for every pending Pod. A Pod that is being deleted, gated or placed already needs no decision.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let mut nodes = world.nodes.clone();
    let undecided = retry(world, &mut nodes, &mut plan);
    for (turn, (pod, wants)) in undecided.into_iter().enumerate() {
        let tie = world.seed.wrapping_add(turn as u64);
        match best(pod, wants, &nodes, &world.existing, tie) {
            Ok((n, score)) => {
                nodes[n].take(pod);
                let bind = bind(pod, &nodes[n], score);
                plan.step(bind, "the best of the nodes that fit");
            }
            Err(message) => {
                let refuse = Action::Refuse {
                    pod: pod.clone(),
                    message,
                    against: against(pod, wants, &nodes, &world.existing),
                };
                plan.step(refuse, "no node fits");
            }
        }
    }
    plan
}

/// Binds Pods whose binding is in doubt to the same nodes again, so that it does not matter whether it was made; a node
/// that objects by now keeps their room nevertheless. Returns the other Pods that need a decision, and these.
fn retry<'a>(
    world: &'a World,
    nodes: &mut [Candidate],
    plan: &mut Plan<Action>,
) -> Vec<(&'a Arc<PodView>, &'a Wants)> {
    let mut undecided = Vec::new();
    for pod in world.pending.iter().filter(|pod| !pod.meta.deleting) {
        let Some(wants) = pod.wants.as_deref().filter(|wants| !wants.gated) else {
            continue;
        };
        let doubted = world.doubts.get(&pod.meta.key);
        let doubted = doubted.and_then(|name| nodes.iter_mut().find(|n| n.view.name() == name));
        let Some(node) = doubted else {
            undecided.push((pod, wants));
            continue;
        };
        match objections(pod, &wants.node, node, &world.existing).is_empty() {
            true => plan.step(bind(pod, node, 0), "its binding was not answered"),
            false => undecided.push((pod, wants)),
        }
        node.take(pod);
    }
    undecided
}

fn bind(pod: &Arc<PodView>, node: &Candidate, score: i64) -> Action {
    Action::Bind {
        pod: pod.clone(),
        node: node.view.name().to_owned(),
        score,
    }
}

fn against(
    pod: &PodView,
    wants: &Wants,
    nodes: &[Candidate],
    existing: &[Existing],
) -> Vec<(String, Vec<Objection>)> {
    let told = nodes.iter().take(TOLD);
    told.map(|node| {
        let name = node.view.name().to_owned();
        (name, objections(pod, &wants.node, node, existing))
    })
    .collect()
}

/// The index and the score of the best node; or, in one sentence, why there is none.
fn best(
    pod: &PodView,
    wants: &Wants,
    nodes: &[Candidate],
    existing: &[Existing],
    tie: u64,
) -> Result<(usize, i64), String> {
    let mut fitting = Vec::new();
    let mut against = BTreeMap::new();
    for (n, node) in nodes.iter().enumerate() {
        match objections(pod, &wants.node, node, existing) {
            none if none.is_empty() => fitting.push(n),
            some => some
                .into_iter()
                .for_each(|one| *against.entry(one).or_default() += 1),
        }
    }
    let most = Most::among(pod, fitting.iter().map(|&n| &nodes[n]));
    let rank = |&n: &usize| (score(pod, &nodes[n], most), scatter(n as u64, tie));
    fitting
        .into_iter()
        .max_by_key(rank)
        .map(|n| (n, score(pod, &nodes[n], most)))
        .ok_or_else(|| sentence(nodes.len(), &against))
}

/// A fixed shuffle, so that equally good nodes take turns, and a seed makes it repeatable.
fn scatter(n: u64, tie: u64) -> u64 {
    (n ^ tie)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(31)
        ^ tie
}

fn sentence(nodes: usize, against: &BTreeMap<Objection, usize>) -> String {
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
