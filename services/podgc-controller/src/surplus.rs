//! The ended Pods that are too many.

use std::sync::Arc;

use setpoint_workload::PodView;

/// Returns the Pods that have ended, without the `kept` newest of them; none if `kept` is 0. Pods that their node has
/// evicted go first, whatever their age.
pub fn surplus(mut pods: Vec<Arc<PodView>>, kept: usize) -> Vec<Arc<PodView>> {
    pods.retain(|pod| kept > 0 && pod.phase.has_ended());
    let count = pods.len().saturating_sub(kept);
    if count > 0 {
        pods.sort_by(|a, b| rank(a).cmp(&rank(b)));
    }
    pods.truncate(count);
    pods
}

fn rank(pod: &PodView) -> impl Ord + '_ {
    let key = &pod.meta.key;
    (!pod.evicted, pod.meta.created, &key.name, &key.namespace)
}
