//! Observe: takes a snapshot of a ReplicaSet and its Pods.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::Key;
use setpoint_workload::PodView;

use crate::{ReplicaSetView, Replicated};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The ReplicaSet, or the ReplicationController as one.
    pub set: Arc<ReplicaSetView>,
    /// The Pods that it owns, and orphans of its namespace, in any order.
    pub pods: Vec<Arc<PodView>>,
    /// The number of active Pods of other sets with the same owner, per node. Pods on nodes with many are deleted
    /// first.
    pub neighbours: HashMap<Box<str>, usize>,
    /// The current time.
    pub now: Timestamp,
    /// A random number, for the names of new Pods.
    pub seed: u64,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the set is gone.
    pub(crate) fn observe<S: Replicated>(
        sets: &Reader<S>,
        pods: &Reader<PodView>,
        key: &Key,
        Inputs { now, seed, .. }: Inputs,
    ) -> Option<Self> {
        let set = sets.get(key)?.into_set();
        Some(Self {
            pods: pods.candidates(&set.meta),
            neighbours: neighbours(sets, pods, &set),
            set,
            now,
            seed,
        })
    }

    /// Returns the owned Pods that are active.
    pub fn active(&self) -> impl Iterator<Item = &Arc<PodView>> {
        self.owned().filter(|pod| pod.is_active())
    }

    /// Returns the owned and selected Pods that are terminating.
    pub fn terminating(&self) -> impl Iterator<Item = &Arc<PodView>> {
        let selected = |pod: &PodView| self.set.selector.matches(&pod.labels);
        self.owned()
            .filter(move |pod| pod.is_terminating() && selected(pod))
    }

    /// Returns the owned Pods, whatever their phase.
    pub fn owned(&self) -> impl Iterator<Item = &Arc<PodView>> {
        self.pods
            .iter()
            .filter(|pod| pod.meta.is_owned_by(&self.set.meta.uid))
    }

    /// Returns the time until a Pod is available: zero if it is, `None` if it is not ready.
    pub fn available_in(&self, pod: &PodView) -> Option<Duration> {
        pod.available_in(self.set.min_ready_seconds, self.now)
    }
}

/// Counts, for each node, the active Pods of sets with the same owner.
fn neighbours<S: Replicated>(
    sets: &Reader<S>,
    pods: &Reader<PodView>,
    set: &ReplicaSetView,
) -> HashMap<Box<str>, usize> {
    let siblings = set
        .meta
        .owner
        .iter()
        .flat_map(|owner| sets.owned_by(&owner.uid));
    let others = siblings.filter(|sibling| sibling.meta().uid != set.meta.uid);
    let mut neighbours = HashMap::new();
    for pod in others.flat_map(|sibling| pods.owned_by(&sibling.meta().uid)) {
        if let Some(node) = pod.node.as_ref().filter(|_| pod.is_active()) {
            let count: &mut usize = neighbours.entry(node.clone()).or_default();
            *count = count.saturating_add(1);
        }
    }
    neighbours
}
