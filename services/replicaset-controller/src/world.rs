//! Observe: everything that a decision about one ReplicaSet may look at.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_machinery::{Reader, Recorder};
use setpoint_model::Key;
use setpoint_proto::Resource;
use setpoint_proto::apps::ReplicaSet;

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
    /// Chance, for the names of new Pods.
    pub seed: u64,
}

impl World {
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

/// The controller: what it looks at, and whom it tells.
pub struct ReplicaSets {
    sets: Reader<Set>,
    pods: Reader<Pod>,
    pub(crate) events: Recorder,
    /// Seeds of rounds whose creates failed, by the uid of the set.
    retries: Mutex<HashMap<String, u64>>,
}

impl ReplicaSets {
    /// A controller that looks at these caches.
    pub fn new(sets: Reader<Set>, pods: Reader<Pod>, events: Recorder) -> Self {
        Self {
            sets,
            pods,
            events,
            retries: Mutex::default(),
        }
    }

    /// Finds the sets that a Pod concerns: its owner, or for an orphan all that select it.
    pub fn keepers(&self) -> impl Fn(&Pod) -> Vec<Key> + Send + Sync + 'static + use<> {
        let sets = self.sets.clone();
        move |pod| {
            let namespace = &pod.meta.key.namespace;
            match &pod.meta.owner {
                Some(owner) if owner.kind == ReplicaSet::KIND => {
                    vec![Key::new(namespace, &owner.name)]
                }
                Some(_) => Vec::new(),
                None => {
                    let mut keepers = sets.in_namespace(namespace);
                    keepers.retain(|set| set.selector.matches(&pod.labels));
                    keepers.iter().map(|set| set.meta.key.clone()).collect()
                }
            }
        }
    }

    pub(crate) fn look_at(&self, key: &Key) -> Option<World> {
        let set = self.sets.get(key)?;
        let mut pods = self.pods.owned_by(&set.meta.uid);
        pods.extend(self.pods.tagged(&key.namespace));
        Some(World {
            seed: self.seed(&set),
            neighbours: self.neighbours(&set),
            set,
            pods,
            now: Timestamp::now(),
        })
    }

    /// Lets the next round choose the same names: a create that failed may have been committed all the same,
    /// and would then be found by its name instead of being repeated under another.
    pub(crate) fn retry_names(&self, world: &World) {
        let uid = world.set.meta.uid.clone();
        self.retries.lock().insert(uid, world.seed);
    }

    fn seed(&self, set: &Set) -> u64 {
        let failed = self.retries.lock().remove(&set.meta.uid);
        failed.unwrap_or_else(rand::random)
    }

    fn neighbours(&self, set: &Set) -> HashMap<Box<str>, usize> {
        let siblings = set
            .meta
            .owner
            .iter()
            .flat_map(|owner| self.sets.owned_by(&owner.uid));
        let others = siblings.filter(|sibling| sibling.meta.uid != set.meta.uid);
        let mut neighbours = HashMap::new();
        for pod in others.flat_map(|sibling| self.pods.owned_by(&sibling.meta.uid)) {
            if let Some(node) = pod.node.as_ref().filter(|_| pod.is_active()) {
                let crowd: &mut usize = neighbours.entry(node.clone()).or_default();
                *crowd = crowd.saturating_add(1);
            }
        }
        neighbours
    }
}
