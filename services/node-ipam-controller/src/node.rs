//! A view of a Node.

use setpoint_controller::View;
use setpoint_model::{Cidr, Meta};
use setpoint_proto::core;

/// The fields of a Node that decide whether it needs a range.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// Whether it has a range of any family.
    pub assigned: bool,
    /// Its ranges of IPv4 that can be parsed.
    pub ranges: Box<[Cidr]>,
}

impl View for NodeView {
    type Object = core::Node;

    fn of(node: core::Node) -> Self {
        let mut meta = Meta::of(&node.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        let texts = node.spec.pod_cidrs.iter().chain([&node.spec.pod_cidr]);
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        let mut ranges: Vec<Cidr> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        // The first one is in both fields.
        ranges.sort_unstable();
        ranges.dedup();
        Self {
            meta,
            assigned: !texts.is_empty(),
            ranges: ranges.into(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
