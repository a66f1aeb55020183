//! Ranking: the order in which Pods are deleted.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_workload::PodView;

use crate::World;

/// Returns the active Pods in the order in which they are deleted, by upstream's criteria (`ActivePodsWithRanks`).
///
/// Times are compared by the logarithm of their age, so that the uid decides between Pods of about the same age.
/// Upstream does not compare the restarts of Pods whose times differ within one power of two; that is not a total
/// order.
pub(crate) fn ranked(world: &World) -> Vec<&Arc<PodView>> {
    let per_node = pods_per_node(world);
    let on_same_node = |pod: &PodView| {
        pod.node
            .as_deref()
            .and_then(|node| per_node.get(node).copied())
    };
    let mut pods: Vec<_> = world.active().collect();
    pods.sort_by_cached_key(|pod| {
        (
            pod.node.is_some(),
            pod.phase,
            pod.ready_since.is_some(),
            pod.deletion_cost,
            Reverse(on_same_node(pod)),
            age(pod.ready_since, world.now),
            Reverse((pod.restarts, pod.sidecar_restarts)),
            age(pod.meta.created, world.now),
            pod.meta.uid.clone(),
        )
    });
    pods
}

/// Returns the number of active Pods of the set and its siblings on each node.
fn pods_per_node(world: &World) -> HashMap<&str, usize> {
    let mut per_node: HashMap<_, _> = world
        .neighbours
        .iter()
        .map(|(node, pods)| (&**node, *pods))
        .collect();
    for node in world.active().filter_map(|pod| pod.node.as_deref()) {
        let pods: &mut usize = per_node.entry(node).or_default();
        *pods = pods.saturating_add(1);
    }
    per_node
}

/// Returns the binary logarithm of an age in nanoseconds, rounded down. A future time sorts below any age, an unknown
/// one below that.
fn age(since: Option<Timestamp>, now: Timestamp) -> Option<Option<u32>> {
    let since = since.filter(|since| *since != Timestamp::MIN)?;
    let age = now.as_nanosecond().saturating_sub(since.as_nanosecond());
    Some(age.checked_ilog2())
}
