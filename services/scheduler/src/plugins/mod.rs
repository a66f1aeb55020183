//! The plugins: pure functions of a cluster, a Pod and a node, named as upstream's.

pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod pod_topology_spread;
pub mod score;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use std::collections::BTreeSet;

use setpoint_model::placement::named_nodes;

use crate::change::Change;
use crate::cluster::Cluster;
use crate::pod::{PodView, Wants};
use crate::reason::{FilterReason, Plugin, Rejectors};
use crate::snapshot::NodeInfo;
use volume_binding::Choice;

/// The state of the filters for one Pod (upstream: that of `PreFilter`).
pub struct Filters<'p> {
    pod: &'p PodView,
    wants: &'p Wants,
    /// The only nodes that its node affinity names.
    named: Option<BTreeSet<&'p str>>,
    spread: pod_topology_spread::State<'p>,
    affinity: inter_pod_affinity::State,
    restrictions: volume_restrictions::State<'p>,
    volumes: volume_binding::State,
}

impl<'p> Filters<'p> {
    /// Prepares the filters for a Pod.
    pub fn of(cluster: &Cluster<'_>, pod: &'p PodView, wants: &'p Wants) -> Self {
        Self {
            pod,
            wants,
            named: wants.node.terms.as_deref().and_then(named_nodes),
            spread: pod_topology_spread::State::of(cluster, wants),
            affinity: inter_pod_affinity::State::of(cluster, pod),
            restrictions: volume_restrictions::State::of(cluster, pod),
            volumes: volume_binding::State::of(cluster, pod),
        }
    }

    /// Adds another Pod to a node, or removes it with a negative number.
    pub fn add(&mut self, cluster: &Cluster<'_>, (other, node): (&PodView, usize), number: i64) {
        self.spread.add(cluster, (other, node), number);
        self.affinity.add(cluster, self.pod, (other, node), number);
        self.restrictions.add(self.pod, other, number);
    }

    /// Returns the reasons why a node cannot take the Pod; none if the Pod fits. As upstream, only the first filter that
    /// rejects the node is reported, and every resource that is short.
    ///
    /// The Pod must fit without the Pods that are nominated to the node, and with those of its priority or a higher one.
    pub fn reasons(
        &mut self,
        cluster: &Cluster<'_>,
        node: usize,
        info: &NodeInfo,
    ) -> Vec<FilterReason> {
        let own = &self.pod.meta.key;
        let ahead =
            |other: &&PodView| other.priority >= self.pod.priority && other.meta.key != *own;
        let nominated = cluster.nominated(node).iter().map(|pod| &**pod);
        let nominated: Vec<_> = nominated.filter(ahead).collect();
        if !nominated.is_empty() {
            let mut with = info.clone();
            for other in &nominated {
                with.take(other);
                self.add(cluster, (other, node), 1);
            }
            let reasons = self.reasons_without_nominated(cluster, node, &with);
            for other in &nominated {
                self.add(cluster, (other, node), -1);
            }
            if !reasons.is_empty() {
                return reasons;
            }
        }
        self.reasons_without_nominated(cluster, node, info)
    }

    /// Returns the volumes of the claims that wait for their first Pod, on a node that fits.
    pub fn volumes(&self, cluster: &Cluster<'_>, node: usize) -> Vec<Choice> {
        let choices = self.volumes.choices(cluster, &cluster.nodes[node].view);
        choices.unwrap_or_default()
    }

    fn reasons_without_nominated(
        &self,
        cluster: &Cluster<'_>,
        node: usize,
        info: &NodeInfo,
    ) -> Vec<FilterReason> {
        let (pod, wants, view) = (self.pod, &self.wants.node, &*info.view);
        if !wants.unsupported.is_empty() {
            let fields = wants.unsupported.iter().copied();
            return fields.map(FilterReason::Unsupported).collect();
        }
        if let Some(problem) = self.volumes.problem() {
            return vec![problem.clone()];
        }
        let named = self.named.as_ref();
        if named.is_some_and(|names| !names.contains(view.name())) {
            return vec![FilterReason::OtherNodes];
        }
        let first = node_unschedulable::filter(wants, view)
            .or_else(|| taint_toleration::filter(wants, view))
            .or_else(|| node_affinity::filter(wants, view))
            .or_else(|| node_ports::filter(pod, info));
        if let Some(first) = first {
            return vec![first];
        }
        let short = node_resources_fit::filter(pod, info);
        if !short.is_empty() {
            return short;
        }
        let last = self.restrictions.filter();
        let last = last.or_else(|| self.volumes.filter(cluster, view));
        let last = last.or_else(|| self.spread.filter(node));
        let last = last.or_else(|| self.affinity.filter(node));
        last.into_iter().collect()
    }
}

/// Returns whether a change may let a Pod fit that these plugins have rejected (upstream: queueing hints).
pub fn helps(pod: &PodView, rejectors: Rejectors, change: &Change) -> bool {
    let Some(wants) = pod.wants.as_deref() else {
        return false;
    };
    let hint = |plugin| match plugin {
        Plugin::NodeUnschedulable => node_unschedulable::hint(&wants.node, change),
        Plugin::TaintToleration => taint_toleration::hint(&wants.node, change),
        Plugin::NodeAffinity => node_affinity::hint(&wants.node, change),
        Plugin::NodePorts => node_ports::hint(pod, change),
        Plugin::NodeResourcesFit => node_resources_fit::hint(pod, change),
        Plugin::VolumeRestrictions => volume_restrictions::hint(pod, change),
        Plugin::VolumeBinding => volume_binding::hint(pod, change),
        Plugin::VolumeZone => volume_zone::hint(change),
        Plugin::PodTopologySpread => pod_topology_spread::hint(wants, change),
        Plugin::InterPodAffinity => inter_pod_affinity::hint(pod, change),
    };
    let mut plugins = Plugin::ALL.into_iter();
    plugins.any(|plugin| rejectors.contains(plugin) && hint(plugin))
}
