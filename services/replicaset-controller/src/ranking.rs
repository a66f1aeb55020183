//! Ranking: the order in which Pods are given up.
#![warn(clippy::arithmetic_side_effects)]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::{Pod, World};

/// Active Pods, those first that are missed least, by upstream's criteria (`ActivePodsWithRanks`).
///
/// Times are compared by the logarithm of their age, so that among Pods of about the same age the uid decides, which
/// spreads what is given up. Upstream skips restarts for Pods whose times differ within one power of two; that would be
/// no total order.
pub(crate) fn ranked(world: &World) -> Vec<&Arc<Pod>> {
    let crowd = crowd(world);
    let crowded = |pod: &Pod| {
        pod.node
            .as_deref()
            .and_then(|node| crowd.get(node).copied())
    };
    let mut pods: Vec<_> = world.active().collect();
    pods.sort_by_cached_key(|pod| {
        (
            pod.node.is_some(),
            pod.phase,
            pod.ready_since.is_some(),
            pod.deletion_cost,
            Reverse(crowded(pod)),
            age(pod.ready_since, world.now),
            Reverse((pod.restarts, pod.sidecar_restarts)),
            age(pod.meta.created, world.now),
            pod.meta.uid.clone(),
        )
    });
    pods
}

/// How many active Pods of the set and its siblings each node has.
fn crowd(world: &World) -> HashMap<&str, usize> {
    let mut crowd: HashMap<_, _> = world
        .neighbours
        .iter()
        .map(|(node, pods)| (&**node, *pods))
        .collect();
    for node in world.active().filter_map(|pod| pod.node.as_deref()) {
        let pods: &mut usize = crowd.entry(node).or_default();
        *pods = pods.saturating_add(1);
    }
    crowd
}

/// The power of two below an age in nanoseconds; less than any other for the future, and still less for an unknown time.
fn age(since: Option<Timestamp>, now: Timestamp) -> Option<Option<u32>> {
    let since = since.filter(|since| *since != Timestamp::MIN)?;
    let age = now.as_nanosecond().saturating_sub(since.as_nanosecond());
    Some(age.checked_ilog2())
}
