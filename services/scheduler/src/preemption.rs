//! Preemption: the Pods of lower priority that make room for a Pod that fits nowhere. Pure.

#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::plugins::Filters;
use crate::pod::PodView;
use crate::profile::Pending;
use crate::reason::{FilterReason, Tally};
use crate::snapshot::NodeInfo;
use crate::tie::tie_break;

/// The number of candidates after which no more nodes are tried: this percentage of the nodes that may help, and at
/// least this many (upstream: `minCandidateNodesPercentage` and `minCandidateNodesAbsolute`).
const CANDIDATES_PERCENT: usize = 10;
const CANDIDATES: usize = 100;

/// A node that can take a Pod once the victims are gone.
#[derive(Debug)]
pub struct Candidate {
    /// The index of the node.
    pub node: usize,
    /// The victims, the most important first.
    pub victims: Vec<Arc<PodView>>,
    /// The number of victims whose PodDisruptionBudget allows no more disruptions.
    pub violations: usize,
}

/// The outcome of preemption for a Pod that fits nowhere.
#[derive(Debug)]
pub enum Preemption {
    /// These victims make room.
    Possible(Candidate),
    /// No node can be made to fit. The message says why.
    Unhelpful(String),
    /// The Pod may not preempt others now. The message says why.
    Ineligible(&'static str),
}

/// Decides on preemption for a Pod that fits on no node, for the reasons given.
pub fn preempt(
    cluster: &Cluster<'_>,
    filters: &mut Filters<'_>,
    pending: Pending<'_>,
    rejected: &[(usize, Vec<FilterReason>)],
    tie: u64,
) -> Preemption {
    let Pending { pod, wants, .. } = pending;
    if wants.never_preempts {
        return Preemption::Ineligible("not eligible due to preemptionPolicy=Never.");
    }
    if awaits_victims(cluster, pending, rejected) {
        let why = "not eligible due to a terminating pod on the nominated node.";
        return Preemption::Ineligible(why);
    }
    let resolvable = |(_, reasons): &&(usize, Vec<FilterReason>)| {
        reasons.iter().all(FilterReason::is_resolvable)
    };
    let potential = rejected.iter().filter(resolvable).map(|(node, _)| *node);
    let mut potential: Vec<_> = potential.collect();
    let offset = tie.checked_rem(potential.len() as u64);
    potential.rotate_left(
        offset
            .and_then(|offset| offset.try_into().ok())
            .unwrap_or(0),
    );
    let search = search(cluster, filters, pod, &potential);
    match best(search.candidates, tie) {
        Some(best) => Preemption::Possible(best),
        None => Preemption::Unhelpful(search.against.sentence(cluster.nodes.len())),
    }
}

/// Returns whether the Pod waits for victims on its nominated node, unless that does not fit for another reason.
fn awaits_victims(
    cluster: &Cluster<'_>,
    pending: Pending<'_>,
    rejected: &[(usize, Vec<FilterReason>)],
) -> bool {
    let Pending { pod, wants, .. } = pending;
    let nominated = wants
        .nominated()
        .and_then(|name| cluster.snapshot.index(name));
    let Some(node) = nominated else {
        return false;
    };
    let mut reasons = rejected.iter().filter(|(rejected, _)| *rejected == node);
    reasons.all(|(_, reasons)| reasons.iter().all(FilterReason::is_resolvable))
        && cluster.pods[node]
            .iter()
            .any(|victim| victim.preempted && victim.priority < pod.priority)
}

struct Search {
    candidates: Vec<Candidate>,
    against: Tally,
}

fn search(
    cluster: &Cluster<'_>,
    filters: &mut Filters<'_>,
    pod: &PodView,
    potential: &[usize],
) -> Search {
    let percent = potential.len().saturating_mul(CANDIDATES_PERCENT) / 100;
    let enough = percent.max(CANDIDATES);
    let (mut candidates, mut against) = (Vec::new(), Tally::default());
    let mut unharmed = false;
    for &node in potential {
        if unharmed && candidates.len() >= enough {
            break;
        }
        match select_victims(cluster, filters, pod, node) {
            Ok(candidate) => {
                unharmed |= candidate.violations == 0;
                candidates.push(candidate);
            }
            Err(reasons) => against.add(&reasons, 1),
        }
    }
    let untried = cluster.nodes.len().saturating_sub(potential.len());
    against.add(&[FilterReason::Unhelpful], untried);
    Search {
        candidates,
        against,
    }
}

/// Selects the victims on a node: all Pods of lower priority are removed, and each is spared that the Pod fits beside,
/// those whose PodDisruptionBudget would be violated before others, and the most important first.
fn select_victims(
    cluster: &Cluster<'_>,
    filters: &mut Filters<'_>,
    pod: &PodView,
    node: usize,
) -> Result<Candidate, Vec<FilterReason>> {
    if cluster.nodes[node].lowest >= pod.priority {
        return Err(vec![FilterReason::NoVictims]);
    }
    // A Pod whose binding is in doubt, or part of this plan, has no node yet and cannot be deleted for another.
    let may_go = |other: &&Arc<PodView>| other.priority < pod.priority && other.node.is_some();
    let (mut removed, staying): (Vec<_>, Vec<_>) = cluster.pods[node].iter().partition(may_go);
    if removed.is_empty() {
        return Err(vec![FilterReason::NoVictims]);
    }
    let mut trial = Trial::new(cluster, filters, node, &staying);
    trial.count(&removed, -1);
    let reasons = trial.reasons();
    if !reasons.is_empty() {
        trial.count(&removed, 1);
        return Err(reasons);
    }
    removed.sort_by_cached_key(|other| other.importance());
    let (violating, others) = by_budgets(cluster, &removed);
    let mut victims = trial.victims(violating);
    let violations = victims.len();
    victims.extend(trial.victims(others));
    trial.count(&victims, 1);
    victims.sort_by_cached_key(|victim| victim.importance());
    Ok(Candidate {
        node,
        victims: victims.into_iter().cloned().collect(),
        violations,
    })
}

/// A node with some of its Pods, on which others are tried.
struct Trial<'a, 'c, 'p> {
    cluster: &'a Cluster<'c>,
    filters: &'a mut Filters<'p>,
    node: usize,
    info: NodeInfo,
}

impl<'a, 'c, 'p> Trial<'a, 'c, 'p> {
    fn new(
        cluster: &'a Cluster<'c>,
        filters: &'a mut Filters<'p>,
        node: usize,
        staying: &[&Arc<PodView>],
    ) -> Self {
        let mut info = NodeInfo::new(cluster.nodes[node].view.clone());
        staying.iter().for_each(|other| info.take(other));
        Self {
            cluster,
            filters,
            node,
            info,
        }
    }

    /// Adds Pods to what the filters count, or removes them with a negative number.
    fn count(&mut self, others: &[&Arc<PodView>], number: i64) {
        for other in others {
            self.filters.add(self.cluster, (other, self.node), number);
        }
    }

    fn reasons(&mut self) -> Vec<FilterReason> {
        self.filters.reasons(self.cluster, self.node, &self.info)
    }

    /// Puts Pods back one by one, and returns those that cannot stay.
    fn victims<'v>(&mut self, mut others: Vec<&'v Arc<PodView>>) -> Vec<&'v Arc<PodView>> {
        others.retain(|other| !self.spare(other));
        others
    }

    fn spare(&mut self, other: &Arc<PodView>) -> bool {
        let without = self.info.clone();
        self.info.take(other);
        self.count(&[other], 1);
        let fits = self.reasons().is_empty();
        if !fits {
            self.info = without;
            self.count(&[other], -1);
        }
        fits
    }
}

/// Splits Pods, in their order, into those of which a PodDisruptionBudget allows no further disruption and the others.
fn by_budgets<'p>(
    cluster: &Cluster<'_>,
    pods: &[&'p Arc<PodView>],
) -> (Vec<&'p Arc<PodView>>, Vec<&'p Arc<PodView>>) {
    let mut left = cluster.allowances.clone();
    pods.iter().partition(|pod| {
        let mut violates = false;
        for (budget, left) in cluster.snapshot.budgets.iter().zip(&mut left) {
            if budget.covers(&pod.meta) {
                *left = left.saturating_sub(1);
                violates |= *left < 0;
            }
        }
        violates
    })
}

/// Returns the best candidate, as upstream: the fewest violated budgets, then the lowest of the highest priorities of
/// victims, then the lowest sum of priorities, then the fewest victims, then the victims of the highest priority that
/// started last.
fn best(candidates: Vec<Candidate>, tie: u64) -> Option<Candidate> {
    let rank = |candidate: &Candidate| {
        let victims = &candidate.victims;
        let highest = victims.first().map(|victim| victim.priority);
        let sum = victims.iter().fold(0i64, |sum, victim| {
            // Not negative, so that many victims count more than few.
            let priority = i64::from(victim.priority).saturating_sub(i64::from(i32::MIN));
            sum.saturating_add(priority)
        });
        let highest_of = victims
            .iter()
            .filter(|victim| Some(victim.priority) == highest);
        // A victim that has not started counts as started now.
        let earliest = highest_of.map(|victim| (victim.started.is_none(), victim.started));
        (
            candidate.violations,
            highest,
            sum,
            victims.len(),
            Reverse(earliest.min()),
            tie_break(candidate.node as u64, tie),
        )
    };
    candidates.into_iter().min_by_key(rank)
}
