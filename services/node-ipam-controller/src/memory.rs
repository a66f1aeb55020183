//! Memory: what a leader has done that the caches do not show.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_model::Cidr;
use tracing::warn;

use crate::{Candidate, NodeView, Occupied, Pool, metrics};

/// What was done, by the uids of Nodes.
#[derive(Default)]
pub(crate) struct Memory {
    /// The ranges that were planned, until the caches show the Node with one.
    reserved: HashMap<String, Cidr>,
    /// Nodes without a range whose Event was recorded.
    told: HashSet<String>,
    /// Nodes with ranges outside of the cluster's.
    foreign: HashSet<String>,
    occupied: Option<Occupied>,
}

impl Memory {
    /// Begins a term. Writes of the last one may be under way still, if nobody else has led since.
    pub(crate) fn begin(&mut self) {
        let reserved = std::mem::take(&mut self.reserved);
        *self = Self {
            reserved,
            ..Self::default()
        };
    }

    /// Notes that a write of this range begins: it may be committed whatever its answer is.
    pub(crate) fn reserve(&mut self, uid: &str, range: Cidr) {
        self.reserved.insert(uid.to_owned(), range);
    }

    /// Notes that the Event of a Node without a range was recorded.
    pub(crate) fn told(&mut self, uid: &str) {
        self.told.insert(uid.to_owned());
    }

    /// Forgets what the caches show now, logs Nodes with foreign ranges once, and updates the metrics.
    pub(crate) fn observe(&mut self, pool: &Pool, nodes: &[Arc<NodeView>]) {
        let waiting = nodes.iter().filter(|node| !node.assigned);
        let waiting: HashSet<&str> = waiting.map(|node| &*node.meta.uid).collect();
        self.reserved.retain(|uid, _| waiting.contains(&**uid));
        self.told.retain(|uid| waiting.contains(&**uid));
        self.note_foreign(pool, nodes);
        let used = nodes.iter().flat_map(|node| node.ranges.iter().copied());
        let now = pool.occupied(used);
        metrics::occupied(pool, self.occupied.as_ref(), &now);
        self.occupied = Some(now);
    }

    fn note_foreign(&mut self, pool: &Pool, nodes: &[Arc<NodeView>]) {
        let is_foreign = |node: &&Arc<NodeView>| {
            let known = node.ranges.iter().any(|range| pool.has(*range));
            node.assigned && !known && !pool.ranges().is_empty()
        };
        let mut foreign = HashSet::new();
        for node in nodes.iter().filter(is_foreign) {
            let uid = &node.meta.uid;
            if !self.foreign.contains(uid) {
                let (node, ranges) = (&node.meta.key.name, &node.ranges);
                warn!(
                    node,
                    ?ranges,
                    "the range of a node is none of cluster_cidrs"
                );
            }
            foreign.insert(uid.clone());
        }
        self.foreign = foreign;
    }

    /// Returns a Node with what was done about it.
    pub(crate) fn candidate(&self, node: Arc<NodeView>) -> Candidate {
        let uid = node.meta.uid.as_str();
        Candidate {
            reserved: self.reserved.get(uid).copied(),
            told: self.told.contains(uid),
            node,
        }
    }
}
