//! NodeResourcesBalancedAllocation: a node is preferred if the Pod evens out the used shares of its CPU and memory.

use crate::plugin::MAX_NODE_SCORE;
use crate::pod::PodView;
use crate::snapshot::NodeInfo;

/// Returns the score of a node, from 50 to 100: above 75 if the shares of CPU and memory are closer with the Pod than
/// without it, below if they are farther apart. 0 if the Pod requests neither.
pub fn score(pod: &PodView, node: &NodeInfo) -> i64 {
    let (has, used, wants) = (&node.view.allocatable, &node.used, &pod.requests);
    if wants.millicpu == 0 && wants.memory == 0 {
        return 0;
    }
    let cpu = used.millicpu.saturating_add(wants.millicpu);
    let memory = used.memory.saturating_add(wants.memory);
    let with = balance([(cpu, has.millicpu), (memory, has.memory)]);
    let without = balance([(used.millicpu, has.millicpu), (used.memory, has.memory)]);
    MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with - without) / 2
}

/// Returns 100 less half of the percentage by which the two shares differ.
fn balance(amounts: [(i64, i64); 2]) -> i64 {
    let share = |(used, has): (i64, i64)| (has != 0).then(|| (used as f64 / has as f64).min(1.0));
    let deviation = match amounts.map(share) {
        [Some(one), Some(other)] => ((one - other) / 2.0).abs(),
        _ => 0.0,
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}
