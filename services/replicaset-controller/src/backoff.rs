//! Backoff: delays creates after nodes have rejected Pods, and limits the number of rejected Pods.
//!
//! It is computed from the rejected Pods alone, so it survives a change of the leader:
//!
//! ```text
//! attempts    = distinct creation times of rejected Pods, none of them older than the newest accepted Pod
//! next create = latest attempt + min(1 s · 2^(attempts − 1), 5 min)
//! ```
//!
//! Pods of one attempt are created within the same second, the resolution of creation times. Upstream has no such
//! backoff (kubernetes/kubernetes#131116).
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::exponential;
use setpoint_workload::PodView;

use crate::World;

/// The number of rejected Pods that are kept of each set: the number of attempts after which the delay is the longest.
pub const REJECTED_KEPT: usize = 10;
/// The delay after the first rejected attempt.
const BASE: Duration = Duration::from_secs(1);
/// The longest delay; that of upstream's container restarts.
const LONGEST: Duration = Duration::from_secs(300);
/// Seconds without an attempt after which the backoff starts again from [`BASE`].
const RESET_SECONDS: i64 = 600;

/// Returns the time until a Pod may be created; zero if one may be created now.
pub(crate) fn wait(world: &World) -> Duration {
    let attempts = attempts(world);
    let Some(latest) = attempts.first() else {
        return Duration::ZERO;
    };
    let repeated = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
    let delay = exponential(BASE, repeated.saturating_sub(1), LONGEST);
    let passed = world.now.as_second().saturating_sub(*latest);
    let passed = Duration::from_secs(u64::try_from(passed).unwrap_or_default());
    delay.saturating_sub(passed)
}

/// Returns the rejected Pods to be deleted. Of each attempt one Pod is kept, of the latest attempts first.
pub(crate) fn surplus_rejected(world: &World) -> Vec<&Arc<PodView>> {
    let mut rejected: Vec<_> = rejected(world).filter(|pod| !pod.meta.deleting).collect();
    rejected.sort_by_key(|pod| (Reverse(created(pod)), &pod.meta.uid));
    let mut attempts = HashSet::new();
    let (first, repeated): (Vec<_>, Vec<_>) = rejected
        .into_iter()
        .partition(|pod| attempts.insert(created(pod)));
    first
        .into_iter()
        .chain(repeated)
        .skip(REJECTED_KEPT)
        .collect()
}

/// Returns the creation times of consecutive rejected attempts in seconds, the latest first.
fn attempts(world: &World) -> Vec<i64> {
    let accepted = world.owned().filter(|pod| pod.admission.is_accepted());
    let last_accepted = accepted.filter_map(|pod| created(pod)).max();
    let mut attempts: Vec<_> = rejected(world).filter_map(|pod| created(pod)).collect();
    attempts.retain(|attempt| last_accepted.is_none_or(|accepted| *attempt >= accepted));
    attempts.sort_unstable_by_key(|attempt| Reverse(*attempt));
    attempts.dedup();
    let consecutive = |pair: &[i64]| pair[0].saturating_sub(pair[1]) <= RESET_SECONDS;
    let pairs = attempts
        .windows(2)
        .take_while(|pair| consecutive(pair))
        .count();
    attempts.truncate(pairs.saturating_add(1));
    attempts
}

fn rejected(world: &World) -> impl Iterator<Item = &Arc<PodView>> {
    world.owned().filter(|pod| pod.admission.is_rejected())
}

fn created(pod: &PodView) -> Option<i64> {
    pod.meta.created.map(|created| created.as_second())
}
