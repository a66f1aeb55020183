//! Observe: takes a snapshot of a DaemonSet, the nodes, its Pods and its revisions.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Owns};
use setpoint_model::Key;
use setpoint_workload::history::Name;
use setpoint_workload::{PodView, RevisionView};

use crate::{Backoff, DaemonSetView, DaemonSets, NodeView};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The DaemonSet.
    pub set: Arc<DaemonSetView>,
    /// All nodes, in any order.
    pub nodes: Vec<Arc<NodeView>>,
    /// The Pods that it owns, and orphans of its namespace, in any order.
    pub pods: Vec<Arc<PodView>>,
    /// The revisions that it owns, and orphans of its namespace, in any order.
    pub revisions: Vec<Arc<RevisionView>>,
    /// The name that a revision of the template would get.
    pub revision_name: Name,
    /// The backoffs of failed Pods, by node.
    pub backoffs: HashMap<String, Backoff>,
    /// The current time.
    pub now: Timestamp,
    /// A random number, for the names of new Pods.
    pub seed: u64,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the set is gone.
    pub(crate) fn observe(caches: &DaemonSets, key: &Key, inputs: Inputs) -> Option<Self> {
        let set = caches.sets.get(key)?;
        let named = |name: &str| caches.revisions.get(&Key::new(&key.namespace, name));
        Some(Self {
            revision_name: set.revision_name(named),
            nodes: caches.nodes.list(),
            backoffs: caches.backoffs.of(&set),
            pods: caches.pods.candidates(&set.meta),
            revisions: caches.revisions.candidates(&set.meta),
            set,
            now: inputs.now,
            seed: inputs.seed,
        })
    }

    /// Returns the Pods that it owns and selects.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = &Arc<PodView>> {
        let set = &self.set;
        self.pods
            .iter()
            .filter(|pod| pod.meta.is_owned_by(&set.meta.uid) && set.selects(&***pod))
    }

    /// Returns the time until a Pod is available: zero if it is, `None` if it is not ready.
    pub(crate) fn available_in(&self, pod: &PodView) -> Option<Duration> {
        pod.available_in(self.set.min_ready_seconds, self.now)
    }

    /// Returns whether a Pod is ready for as long as it must be.
    pub(crate) fn is_available(&self, pod: &PodView) -> bool {
        self.available_in(pod).is_some_and(|wait| wait.is_zero())
    }
}
