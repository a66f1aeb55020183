//! The signs of life of nodes, and the times at which they were noticed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::coordination::Lease;
use setpoint_proto::meta::{MicroTime, Time};

use crate::NodeView;

/// The fields of the Lease of a node that are signs of life.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The time that the agent wrote last. It is compared with itself only, never with a clock.
    pub renewed: Option<MicroTime>,
}

impl View for LeaseView {
    type Object = Lease;

    fn of(lease: Lease) -> Self {
        let mut meta = Meta::of(&lease.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        let renewed = lease.spec.renew_time;
        Self { meta, renewed }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The signs of life of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signs {
    uid: String,
    heartbeat: Option<Time>,
    /// The renewal of its Lease.
    pub renewed: Option<MicroTime>,
}

/// The newest signs of life of nodes, with their times by a clock of this process.
#[derive(Debug, Default)]
pub struct Health {
    heard: HashMap<String, (Signs, Duration)>,
}

impl Health {
    /// Notes the signs of life of a node. They are new if they differ from the last ones, or if there are none: a node
    /// that appears, or that a new leader sees first, has the full grace period.
    pub fn observe(&mut self, node: &NodeView, lease: Option<&LeaseView>, now: Duration) {
        let signs = Signs {
            uid: node.meta.uid.clone(),
            heartbeat: node.heartbeat(),
            renewed: lease.and_then(|lease| lease.renewed),
        };
        match self.heard.get(&node.meta.key.name) {
            Some((last, _)) if *last == signs => {}
            _ => _ = self.heard.insert(node.meta.key.name.clone(), (signs, now)),
        }
    }

    /// Forgets all other nodes.
    pub fn keep(&mut self, nodes: &[Arc<NodeView>]) {
        if self.heard.len() > nodes.len() {
            let mut left = HashMap::with_capacity(nodes.len());
            for node in nodes {
                let name = &node.meta.key.name;
                left.extend(self.heard.remove_entry(name));
            }
            self.heard = left;
        }
    }

    /// Gives every node the full grace period.
    pub fn renew(&mut self, now: Duration) {
        self.heard.values_mut().for_each(|(_, at)| *at = now);
    }

    /// Returns the last signs of life of a node, and the time since then.
    pub fn last(&self, node: &str, now: Duration) -> (Signs, Duration) {
        let heard = self.heard.get(node);
        heard.map_or_else(Default::default, |(signs, at)| {
            (signs.clone(), now.saturating_sub(*at))
        })
    }
}
