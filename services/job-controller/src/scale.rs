//! Scale: which Pods a Job lacks, and which it has too many of.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::Plan;
use setpoint_workload::unused_name;

use crate::plan::discard;
use crate::tally::Tally;
use crate::{Action, BURST, Indexes, JobPodView, World, backoff};

/// Adds the deletes of surplus Pods; without any, the creates of missing ones.
pub(crate) fn scale(world: &World, tally: &Tally<'_>, plan: &mut Plan<Action>) {
    let active = world.active().count();
    let desired = desired(world, tally, active);
    let surplus = surplus(world, active.saturating_sub(desired));
    for (pod, because) in surplus.iter().take(BURST) {
        plan.step(discard(pod), because);
    }
    if surplus.is_empty() {
        // A terminating Pod that is not replaced yet occupies the place of its successor.
        let waits_for = world
            .terminating()
            .filter(|_| world.job.replaces_ended_only);
        let occupied = active.saturating_add(waits_for.count());
        create(
            world,
            tally,
            desired.saturating_sub(occupied).min(BURST),
            plan,
        );
    }
}

/// Returns the number of Pods that should be active.
fn desired(world: &World, tally: &Tally<'_>, active: usize) -> usize {
    let job = &world.job;
    match job.completions {
        _ if job.suspended => 0,
        Some(completions) => completions
            .saturating_sub(tally.succeeded)
            .min(job.parallelism),
        // Pods that are active when the first succeeds may finish.
        None if tally.succeeded > 0 => active,
        None => job.parallelism,
    }
}

type Surplus<'w> = Vec<(&'w Arc<JobPodView>, &'static str)>;

/// Returns the Pods to be deleted, at least this number: first those that can never be of use.
fn surplus(world: &World, at_least: usize) -> Surplus<'_> {
    let mut active: Vec<_> = world.active().collect();
    active.sort_by_cached_key(|pod| Reverse(rank(pod)));
    let mut indexes = HashSet::new();
    let mut useless = |pod: &JobPodView| {
        let index = pod.details().index;
        match () {
            // An earlier reconcile has begun to delete it.
            () if !pod.is_tracked() => Some("it is not counted"),
            () if !world.job.indexed => None,
            () if !world.job.has_index(index) => Some("it has no valid completion index"),
            () if !indexes.insert(index) => Some("another Pod has its completion index"),
            () => None,
        }
    };
    let (mut surplus, mut rest) = (Surplus::new(), Vec::new());
    for pod in active {
        match useless(pod) {
            Some(because) => surplus.push((pod, because)),
            None => rest.push(pod),
        }
    }
    let because = match world.job.suspended {
        true => "the Job is suspended",
        false => "more Pods than the parallelism and the missing completions",
    };
    let more = at_least.saturating_sub(surplus.len());
    surplus.extend(rest.into_iter().rev().take(more).map(|pod| (pod, because)));
    surplus
}

/// The order in which Pods are deleted, by upstream's criteria (`ActivePods`).
fn rank(pod: &JobPodView) -> impl Ord + use<> {
    let base = &pod.base;
    (
        base.node.is_some(),
        base.phase,
        base.ready_since
            .map(|since| (since != Timestamp::MIN, Reverse(since))),
        Reverse((base.restarts, base.sidecar_restarts)),
        base.meta.created.map(Reverse),
        base.meta.uid.clone(),
    )
}

fn create(world: &World, tally: &Tally<'_>, missing: usize, plan: &mut Plan<Action>) {
    let per_index = world.job.backoff_limit_per_index.is_some();
    let wait = match per_index || missing == 0 {
        true => Duration::ZERO,
        false => backoff::wait(world),
    };
    if !wait.is_zero() {
        return plan.look_again(wait);
    }
    let indexes: Vec<_> = match world.job.indexed {
        true => pending(world, tally, missing)
            .into_iter()
            .map(Some)
            .collect(),
        false => vec![None; missing],
    };
    let used = world.pods.iter().map(|pod| pod.base.meta.key.name.clone());
    let (mut used, mut seed): (HashSet<_>, _) = (used.collect(), world.seed);
    for index in indexes {
        let last = tally.last_failed(index);
        let wait = last.map_or(Duration::ZERO, |last| backoff::wait_for(last, world.now));
        if !wait.is_zero() {
            plan.look_again(wait);
            continue;
        }
        let failures = index
            .filter(|_| per_index)
            .map(|index| tally.failures(index));
        let name = unused_name(&world.job.prefix(index), &mut seed, &mut used);
        let because = match last {
            Some(_) => "the last Pod of its index has failed",
            None => "fewer Pods than the parallelism and the missing completions",
        };
        plan.step(
            Action::Create {
                name,
                index,
                failures,
            },
            because,
        );
    }
}

/// Returns the first indexes that need a Pod.
fn pending(world: &World, tally: &Tally<'_>, at_most: usize) -> Vec<usize> {
    let job = &world.job;
    let occupied = world.owned().filter(|pod| {
        pod.base.is_active() || (job.replaces_ended_only && pod.base.is_terminating())
    });
    let occupied: Indexes = occupied.filter_map(|pod| pod.details().index).collect();
    let ended = tally.completed_indexes.union(&tally.failed_indexes);
    let taken = occupied.union(&ended);
    taken.missing(job.index_count()).take(at_most).collect()
}
