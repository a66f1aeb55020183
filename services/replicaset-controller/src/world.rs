//! Observe: everything that a decision about one ReplicaSet may look at.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::Key;

use crate::{Pod, Set};

/// One ReplicaSet and its surroundings at one moment.
#[derive(Clone, Debug)]
pub struct World {
    /// What is wanted.
    pub set: Arc<Set>,
    /// The Pods that it owns, and orphans of its namespace, in any order.
    pub pods: Vec<Arc<Pod>>,
    /// Active Pods of sets with the same owner, per node: where they crowd, Pods are given up first.
    pub neighbours: HashMap<Box<str>, usize>,
    /// The time.
    pub now: Timestamp,
    /// A random number, for the names of new Pods.
    pub seed: u64,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the set is gone.
    pub(crate) fn observe(
        sets: &Reader<Set>,
        pods: &Reader<Pod>,
        key: &Key,
        Inputs { now, seed }: Inputs,
    ) -> Option<Self> {
        let set = sets.get(key)?;
        let mut candidates = pods.owned_by(&set.meta.uid);
        candidates.extend(pods.tagged(&key.namespace));
        Some(Self {
            neighbours: neighbours(sets, pods, &set),
            set,
            pods: candidates,
            now,
            seed,
        })
    }

    /// Pods that are its own and count.
    pub fn active(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.owned().filter(|pod| pod.is_active())
    }

    /// Pods that are its own, still selected and on their way out.
    pub fn terminating(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let selected = |pod: &Pod| self.set.selector.matches(&pod.labels);
        self.owned()
            .filter(move |pod| pod.is_terminating() && selected(pod))
    }

    /// Pods that are its own, whatever has become of them.
    pub fn owned(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods
            .iter()
            .filter(|pod| pod.meta.is_owned_by(&self.set.meta.uid))
    }

    /// How long until a Pod is available: zero if it is, `None` if it is not even ready.
    pub fn available_in(&self, pod: &Pod) -> Option<Duration> {
        pod.available_in(self.set.min_ready_seconds, self.now)
    }
}

/// Counts, for each node, the active Pods of sets with the same owner.
fn neighbours(sets: &Reader<Set>, pods: &Reader<Pod>, set: &Set) -> HashMap<Box<str>, usize> {
    let siblings = set
        .meta
        .owner
        .iter()
        .flat_map(|owner| sets.owned_by(&owner.uid));
    let others = siblings.filter(|sibling| sibling.meta.uid != set.meta.uid);
    let mut neighbours = HashMap::new();
    for pod in others.flat_map(|sibling| pods.owned_by(&sibling.meta.uid)) {
        if let Some(node) = pod.node.as_ref().filter(|_| pod.is_active()) {
            let crowd: &mut usize = neighbours.entry(node.clone()).or_default();
            *crowd = crowd.saturating_add(1);
        }
    }
    neighbours
}
