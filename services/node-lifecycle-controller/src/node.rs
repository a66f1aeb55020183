//! A view of a Node.

use std::collections::BTreeMap;

use setpoint_controller::View;
use setpoint_model::{Meta, condition};
use setpoint_proto::core::{self, NodeCondition, Taint};
use setpoint_proto::meta::Time;

const REGION: [&str; 2] = [
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
];
const ZONE: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];
/// On a node that does not count in the state of its zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";
/// Labels, and the former names under which selectors may still expect them.
const FORMER: [(&str, &str); 2] = [
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
];

/// The fields of a Node that decide its health and its taints.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// Region and zone; empty without labels.
    pub zone: String,
    /// Whether it is left out of the state of its zone.
    pub excluded: bool,
    /// Labels under former names that it should have.
    pub missing_labels: BTreeMap<String, String>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// The taints.
    pub taints: Vec<Taint>,
    /// The conditions.
    pub conditions: Vec<NodeCondition>,
}

/// The status of the condition `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The agent says so.
    Yes,
    /// The agent denies it.
    No,
    /// The agent does not answer.
    Unknown,
    /// There is no such condition: the agent has never posted a status.
    Never,
}

impl View for NodeView {
    type Object = core::Node;

    fn of(node: core::Node) -> Self {
        let mut meta = Meta::of(&node.metadata);
        let labels = std::mem::take(&mut meta.labels);
        meta.annotations.clear();
        Self {
            zone: zone(&labels),
            excluded: labels.contains_key(EXCLUDED),
            missing_labels: missing(&labels),
            meta,
            unschedulable: node.spec.unschedulable,
            taints: node.spec.taints,
            conditions: node.status.conditions,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

type Labels = BTreeMap<String, String>;

fn zone(labels: &Labels) -> String {
    let [region, zone] = [REGION, ZONE].map(|names| {
        let set = names.iter().find_map(|name| labels.get(*name));
        set.map_or("", String::as_str)
    });
    match (region, zone) {
        ("", "") => String::new(),
        _ => format!("{region}/{zone}"),
    }
}

fn missing(labels: &Labels) -> Labels {
    let missing = FORMER.iter().filter_map(|(name, former)| {
        let value = labels.get(*name)?;
        let is_set = labels.get(*former) == Some(value);
        (!is_set).then(|| ((*former).to_owned(), value.clone()))
    });
    missing.collect()
}

impl NodeView {
    /// Returns the status of its condition `Ready`.
    pub fn ready(&self) -> Ready {
        match condition::get(&self.conditions, "Ready") {
            None => Ready::Never,
            Some(ready) => match ready.status.as_str() {
                condition::TRUE => Ready::Yes,
                condition::FALSE => Ready::No,
                _ => Ready::Unknown,
            },
        }
    }

    /// Returns the time that the agent wrote last. It is compared with itself only, never with a clock.
    pub fn heartbeat(&self) -> Option<Time> {
        let ready = condition::get(&self.conditions, "Ready");
        ready.map(|ready| ready.last_heartbeat_time)
    }

    /// Returns whether the difference of two versions matters: that of heartbeats does not.
    pub fn differs(&self, other: &Self) -> bool {
        let conditions = |node: &Self| {
            let all = node.conditions.iter();
            all.map(|one| (one.r#type.clone(), one.status.clone()))
                .collect::<Vec<_>>()
        };
        let rest = |node: &Self| {
            (
                node.meta.uid.clone(),
                node.zone.clone(),
                node.excluded,
                node.unschedulable,
            )
        };
        rest(self) != rest(other)
            || self.taints != other.taints
            || self.missing_labels != other.missing_labels
            || conditions(self) != conditions(other)
    }
}
