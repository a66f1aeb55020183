//! Plan: the best node for each Pod in order, or the Pods that make room for it; each decision includes those before
//! it. Pure.

use std::sync::Arc;

use setpoint_controller::{Plan, Step};
use setpoint_task::catch_unwind;

use crate::cluster::Cluster;
use crate::plugin::PluginSet;
use crate::plugins::Filters;
use crate::pod::{PodView, Wants};
use crate::preemption::{Candidate, Preemption, preempt};
use crate::profile::{Pending, Profiles};
use crate::reason::{FilterReason, Tally};
use crate::scoring::scores;
use crate::snapshot::Snapshot;
use crate::status::Nomination;
use crate::storage::Choice;
use crate::tie::tie_break;

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
    /// Reserves room on a node, and has the claims of the Pod bound to volumes there. The Pod is bound once they are.
    BindVolumes {
        /// The Pod, which has no node.
        pod: Arc<PodView>,
        /// The name of the node.
        node: String,
        /// The claims that wait for their first Pod, and their volumes.
        choices: Vec<Choice>,
    },
    /// Writes the reason why no node fits into the condition of the Pod, and the node on which victims make room for
    /// it.
    MarkUnschedulable {
        /// The Pod, which has no node.
        pod: Arc<PodView>,
        /// The message of the condition, in upstream's words.
        message: String,
        /// The change of its nominated node.
        nomination: Nomination,
        /// The plugins that rejected it.
        rejectors: PluginSet,
        /// The reasons against each node, for some of the nodes.
        against: Vec<(String, Vec<FilterReason>)>,
    },
    /// Deletes a Pod of lower priority.
    Preempt {
        /// The Pod that needs the room.
        pod: Arc<PodView>,
        /// The Pod that is deleted.
        victim: Arc<PodView>,
        /// The name of the node.
        node: String,
    },
    /// Clears the nominated node of a Pod of lower priority, which may fit elsewhere.
    Withdraw {
        /// The Pod that takes the room.
        pod: Arc<PodView>,
        /// The Pod that was nominated.
        nominated: Arc<PodView>,
    },
}

/// The maximum number of nodes whose reasons are listed.
const REPORTED_NODES: usize = 32;

impl Action {
    /// Returns the Pod that is decided on.
    pub const fn pod(&self) -> &Arc<PodView> {
        match self {
            Self::Bind { pod, .. }
            | Self::BindVolumes { pod, .. }
            | Self::MarkUnschedulable { pod, .. }
            | Self::Preempt { pod, .. }
            | Self::Withdraw { pod, .. } => pod,
        }
    }
}

/// Decides on every pending Pod by its profile. One that is being deleted, is gated, has a node or is another
/// scheduler's gets no decision, nor does one whose decision panics.
///
/// The first step of a Pod that preempts others nominates the node; the next ones, which do not depend on each other,
/// are started once it has succeeded.
pub fn plan(snapshot: &Snapshot, profiles: &Profiles) -> Plan<Action> {
    plan_by(snapshot, profiles, decide)
}

type Decide = fn(&mut Cluster<'_>, Pending<'_>, u64) -> Vec<Step<Action>>;

fn plan_by(snapshot: &Snapshot, profiles: &Profiles, decide: Decide) -> Plan<Action> {
    let mut plan = Plan::default();
    let mut cluster = Cluster::new(snapshot);
    let mut undecided = Vec::new();
    for pod in &snapshot.pending {
        let Some(pending) = profiles.pending(pod) else {
            continue;
        };
        match catch_unwind("schedule", || retry(&mut cluster, pending)) {
            Ok(Some(step)) => plan.steps.push(step),
            Ok(None) => undecided.push(pending),
            Err(_) => {}
        }
    }
    for (n, pending) in undecided.into_iter().enumerate() {
        let tie = snapshot.seed.wrapping_add(n as u64);
        let decided = catch_unwind("schedule", || decide(&mut cluster, pending, tie));
        plan.steps.extend(decided.into_iter().flatten());
    }
    plan
}

/// Binds a Pod with an assumed binding to the same node again, so that the outcome of the first binding does not
/// matter. If the node no longer fits, its resources stay reserved.
fn retry(cluster: &mut Cluster<'_>, pending: Pending<'_>) -> Option<Step<Action>> {
    let pod = pending.pod;
    let assumed = cluster.snapshot.assumed.get(&pod.meta.key)?;
    let node = cluster.snapshot.index(assumed)?;
    let mut filters = Filters::of(cluster, pending);
    let reasons = filters.reasons(cluster, node, &cluster.nodes[node]);
    cluster.place(node, pod);
    reasons.is_empty().then(|| Step {
        action: bind(cluster, pod, node, 0),
        because: "its binding was not answered",
    })
}

fn decide(cluster: &mut Cluster<'_>, pending: Pending<'_>, tie: u64) -> Vec<Step<Action>> {
    let pod = pending.pod;
    let mut filters = Filters::of(cluster, pending);
    if let Some(node) = nominated(cluster, &mut filters, pending.wants) {
        let action = place(cluster, &filters, pod, node, 0);
        let because = "the node that was nominated fits";
        return vec![Step { action, because }];
    }
    let (fitting, rejected) = filter(cluster, &mut filters);
    if let Some((node, score)) = best(cluster, pending, &fitting, tie) {
        let action = place(cluster, &filters, pod, node, score);
        let because = "the best of the nodes that fit";
        return vec![Step { action, because }];
    }
    let preempts = pending.profile.preempts && !rejected.is_empty();
    let preemption = preempts.then(|| preempt(cluster, &mut filters, pending, &rejected, tie));
    refuse(cluster, pod, &rejected, preemption)
}

/// Returns for each node of a snapshot its score for a Pod that fits there, or the reasons against it.
pub fn verdicts(snapshot: &Snapshot, pending: Pending<'_>) -> Vec<Result<i64, Vec<FilterReason>>> {
    let cluster = Cluster::new(snapshot);
    let (fitting, rejected) = filter(&cluster, &mut Filters::of(&cluster, pending));
    let mut verdicts = vec![Ok(0); cluster.nodes.len()];
    for (node, score) in fitting.iter().zip(scores(&cluster, pending, &fitting)) {
        verdicts[*node] = Ok(score);
    }
    for (node, reasons) in rejected {
        verdicts[node] = Err(reasons);
    }
    verdicts
}

/// Returns the Pod's nominated node, if it fits.
fn nominated(cluster: &Cluster<'_>, filters: &mut Filters<'_>, wants: &Wants) -> Option<usize> {
    let node = cluster.snapshot.index(wants.nominated()?)?;
    let reasons = filters.reasons(cluster, node, &cluster.nodes[node]);
    reasons.is_empty().then_some(node)
}

/// Nodes by index, with the reasons against them.
type Rejected = Vec<(usize, Vec<FilterReason>)>;

/// Splits the nodes into those that fit and the others.
fn filter(cluster: &Cluster<'_>, filters: &mut Filters<'_>) -> (Vec<usize>, Rejected) {
    let (mut fitting, mut rejected) = (Vec::new(), Vec::new());
    for (node, info) in cluster.nodes.iter().enumerate() {
        match filters.reasons(cluster, node, info) {
            none if none.is_empty() => fitting.push(node),
            reasons => rejected.push((node, reasons)),
        }
    }
    (fitting, rejected)
}

/// Returns the best of the nodes that fit, and its score.
fn best(
    cluster: &Cluster<'_>,
    pending: Pending<'_>,
    fitting: &[usize],
    tie: u64,
) -> Option<(usize, i64)> {
    let scored = fitting.iter().zip(scores(cluster, pending, fitting));
    let rank = |(node, score): &(&usize, i64)| (*score, tie_break(**node as u64, tie));
    let best = scored.max_by_key(rank);
    best.map(|(node, score)| (*node, score))
}

/// Places the Pod on a node. Returns the write: its claims are bound before it is.
fn place(
    cluster: &mut Cluster<'_>,
    filters: &Filters<'_>,
    pod: &Arc<PodView>,
    node: usize,
    score: i64,
) -> Action {
    let choices = filters.volumes(cluster, node);
    cluster.place(node, pod);
    if choices.is_empty() {
        return bind(cluster, pod, node, score);
    }
    cluster.take_volumes(node, &choices);
    Action::BindVolumes {
        pod: pod.clone(),
        node: cluster.nodes[node].view.name().to_owned(),
        choices,
    }
}

fn bind(cluster: &Cluster<'_>, pod: &Arc<PodView>, node: usize, score: i64) -> Action {
    Action::Bind {
        pod: pod.clone(),
        node: cluster.nodes[node].view.name().to_owned(),
        score,
    }
}

/// Returns the steps for a Pod that fits nowhere.
fn refuse(
    cluster: &mut Cluster<'_>,
    pod: &Arc<PodView>,
    rejected: &Rejected,
    preemption: Option<Preemption>,
) -> Vec<Step<Action>> {
    let mut tally = Tally::default();
    for (_, reasons) in rejected {
        tally.add(reasons, 1);
    }
    let nodes = cluster.nodes.len();
    let refused = match nodes {
        0 => "no nodes available to schedule pods".to_owned(),
        nodes => tally.sentence(nodes),
    };
    let (nomination, message, candidate) = match preemption {
        None => (Nomination::Keep, refused, None),
        Some(Preemption::Ineligible(why)) => (
            Nomination::Keep,
            format!("{refused} preemption: {why}"),
            None,
        ),
        Some(Preemption::Unhelpful(why)) => (
            Nomination::Clear,
            format!("{refused} preemption: {why}"),
            None,
        ),
        Some(Preemption::Possible(candidate)) => {
            let node = cluster.nodes[candidate.node].view.name().to_owned();
            (Nomination::Node(node), refused, Some(candidate))
        }
    };
    if nomination == Nomination::Clear {
        cluster.withdraw(&pod.meta.key);
    }
    let because = match &candidate {
        Some(_) => "no node fits; Pods of lower priority make room",
        None => "no node fits",
    };
    let mut steps = vec![Step {
        action: Action::MarkUnschedulable {
            pod: pod.clone(),
            message,
            nomination,
            // Any plugin may accept the first node.
            rejectors: match nodes {
                0 => PluginSet::ALL,
                _ => tally.rejectors(),
            },
            against: against(cluster, rejected),
        },
        because,
    }];
    steps.extend(
        candidate
            .into_iter()
            .flat_map(|one| evict(cluster, pod, one)),
    );
    steps
}

fn against(cluster: &Cluster<'_>, rejected: &Rejected) -> Vec<(String, Vec<FilterReason>)> {
    let reported = rejected.iter().take(REPORTED_NODES);
    reported
        .map(|(node, reasons)| {
            let name = cluster.nodes[*node].view.name().to_owned();
            (name, reasons.clone())
        })
        .collect()
}

/// Returns the steps that make room on a node, and reserves it for the Pod.
fn evict(cluster: &mut Cluster<'_>, pod: &Arc<PodView>, candidate: Candidate) -> Vec<Step<Action>> {
    let index = candidate.node;
    let node = cluster.nodes[index].view.name().to_owned();
    let mut steps = Vec::new();
    for victim in candidate.victims {
        // One that is being deleted already, or makes room for an earlier Pod of this plan, needs no write.
        if victim.meta.deleting || !cluster.victims.insert(victim.meta.key.clone()) {
            continue;
        }
        spend(cluster, &victim);
        steps.push(Step {
            action: Action::Preempt {
                pod: pod.clone(),
                victim,
                node: node.clone(),
            },
            because: "a Pod of higher priority needs its room",
        });
    }
    let lower = |nominated: &&Arc<PodView>| nominated.priority < pod.priority;
    let lower: Vec<_> = cluster
        .nominated(index)
        .iter()
        .filter(lower)
        .cloned()
        .collect();
    for nominated in lower {
        cluster.withdraw(&nominated.meta.key);
        steps.push(Step {
            action: Action::Withdraw {
                pod: pod.clone(),
                nominated,
            },
            because: "a Pod of higher priority takes the room that was reserved for it",
        });
    }
    cluster.nominate(index, pod);
    steps
}

/// Counts the disruption of a Pod against the budgets that cover it.
fn spend(cluster: &mut Cluster<'_>, victim: &PodView) {
    let budgets = cluster.snapshot.budgets.iter();
    for (budget, left) in budgets.zip(&mut cluster.allowances) {
        if budget.covers(&victim.meta) {
            *left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
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
            wants: Some(Box::new(Wants {
                scheduler: "default-scheduler".into(),
                ..Wants::default()
            })),
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
        let pending = ["first", "poison", "last"].map(pod);
        let snapshot = Snapshot::new(vec![Arc::new(node)], [], pending.into());
        let steps = plan_by(&snapshot, &Profiles::default(), |cluster, pending, tie| {
            assert_ne!(pending.pod.meta.key.name, "poison");
            decide(cluster, pending, tie)
        });
        let steps = steps.steps.iter();
        let decided: Vec<_> = steps
            .map(|step| &*step.action.pod().meta.key.name)
            .collect();
        assert_eq!(decided, ["first", "last"]);
    }
}
