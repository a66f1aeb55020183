//! How good a node is for a Pod that it can take.

use std::collections::HashMap;

use crate::filter::tolerates;
use crate::pod::PodView;
use crate::world::Candidate;

/// The most that one criterion gives (upstream's `MaxNodeScore`).
const MAX: i64 = 100;
/// Spreading counts twice, as upstream's default for PodTopologySpread.
const SPREAD: i64 = 2;
/// Discouraging taints count thrice, as upstream's default for TaintToleration.
const TAINTS: i64 = 3;

/// The share of CPU and memory left once the Pod is there, how few of its siblings are, and whether it is welcome.
pub fn score(pod: &PodView, node: &Candidate, most_siblings: i64) -> i64 {
    least_allocated(pod, node)
        + SPREAD * spread(pod, node, most_siblings)
        + TAINTS * welcome(pod, node)
}

fn welcome(pod: &PodView, node: &Candidate) -> i64 {
    let tolerations = pod.wants.as_ref().map(|wants| &*wants.node.tolerations);
    let tolerated = |taint| tolerates(tolerations.unwrap_or_default(), taint);
    match node.view.discouraging.iter().all(tolerated) {
        true => MAX,
        false => 0,
    }
}

fn least_allocated(pod: &PodView, node: &Candidate) -> i64 {
    let has = &node.view.allocatable;
    let free = |has: i64, used: i64, wants: i64| match has - used - wants {
        left if has > 0 && left > 0 => left * MAX / has,
        _ => 0,
    };
    let (used, wants) = (&node.used, &pod.requests);
    let cpu = free(has.millicpu, used.assumed_millicpu, wants.assumed_millicpu);
    let memory = free(has.memory, used.assumed_memory, wants.assumed_memory);
    (cpu + memory) / 2
}

fn spread(pod: &PodView, node: &Candidate, most_siblings: i64) -> i64 {
    match most_siblings {
        0 => MAX,
        most => (most - node.siblings(pod)) * MAX / most,
    }
}

/// How many Pods of each controller a node runs.
pub type Siblings = HashMap<String, i64>;
