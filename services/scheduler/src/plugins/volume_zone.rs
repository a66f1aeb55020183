//! VolumeZone: volumes with labels of a zone or region are used on nodes there.

use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::reason::FilterReason;
use crate::storage::VolumeView;

/// The labels of zones and regions, and their names in old versions of Kubernetes.
const LABELS: [(&str, &str); 2] = [
    (
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/zone",
    ),
    (
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/region",
    ),
];
/// Separates the zones of a volume that is in several.
const SEPARATOR: &str = "__";

/// Returns why the node cannot take a Pod with this volume.
pub fn filter(volume: &VolumeView, node: &NodeView) -> Option<FilterReason> {
    let fits = LABELS.iter().all(|(label, old)| {
        let labels = &volume.volume.meta.labels;
        let Some(zones) = labels.get(*label).or_else(|| labels.get(*old)) else {
            return true;
        };
        let of_node = node.labels();
        let zone = of_node.get(*label).or_else(|| of_node.get(*old));
        // As upstream, a node without the labels fits: the cluster has no zones.
        match zone {
            Some(zone) => zones.split(SEPARATOR).any(|one| one == zone),
            None => LABELS
                .iter()
                .all(|(label, old)| !of_node.contains_key(*label) && !of_node.contains_key(*old)),
        }
    });
    (!fits).then_some(FilterReason::VolumeZone)
}

/// Returns whether a change may let the Pod fit: a node appears, or has other labels.
pub fn hint(change: &ClusterEvent) -> bool {
    match change {
        ClusterEvent::Node {
            old,
            new: Some(new),
        } => old.as_ref().is_none_or(|old| old.labels() != new.labels()),
        _ => false,
    }
}
