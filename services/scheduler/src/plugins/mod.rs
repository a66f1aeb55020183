//! The plugins: pure functions of a cluster, a Pod and a node, named as upstream's.

pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod score;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use std::collections::BTreeSet;

use setpoint_model::placement::named_nodes;

use crate::cluster::Cluster;
use crate::cluster_event::ClusterEvent;
use crate::plugin::{Plugin, PluginSet};
use crate::pod::PodView;
use crate::profile::{Pending, Profile};
use crate::reason::FilterReason;
use crate::snapshot::NodeInfo;
use crate::storage::Choice;

/// The state of the filters for one Pod (upstream: that of `PreFilter`).
pub struct Filters<'p> {
    pending: Pending<'p>,
    /// The only nodes that its node affinity names.
    named: Option<BTreeSet<&'p str>>,
    spread: pod_topology_spread::State<'p>,
    affinity: inter_pod_affinity::State,
    restrictions: volume_restrictions::State<'p>,
    limits: node_volume_limits::State,
    volumes: volume_binding::State,
}

impl<'p> Filters<'p> {
    /// Prepares the filters for a Pod.
    pub fn of(cluster: &Cluster<'_>, pending: Pending<'p>) -> Self {
        let Pending {
            pod,
            wants,
            profile,
        } = pending;
        let named = profile.filters.contains(Plugin::NodeAffinity);
        let terms = wants.node.terms.as_deref().filter(|_| named);
        Self {
            pending,
            named: terms.and_then(named_nodes),
            spread: pod_topology_spread::State::of(cluster, pending),
            affinity: inter_pod_affinity::State::of(cluster, pod),
            restrictions: volume_restrictions::State::of(cluster, pod),
            limits: node_volume_limits::State::of(cluster, pod),
            volumes: volume_binding::State::of(cluster, pod),
        }
    }

    /// Adds another Pod to a node, or removes it with a negative number.
    pub fn add(&mut self, cluster: &Cluster<'_>, (other, node): (&PodView, usize), number: i64) {
        self.spread.add(cluster, (other, node), number);
        let pod = self.pending.pod;
        self.affinity.add(cluster, pod, (other, node), number);
        self.restrictions.add(pod, other, number);
        self.limits.add(cluster, (other, node), number);
    }

    /// Returns the reasons why a node cannot take the Pod; none if the Pod fits. As upstream, only the first filter
    /// that rejects the node is reported, and every resource that is short.
    ///
    /// The Pod must fit without the Pods that are nominated to the node, and with those of its priority or a higher
    /// one.
    pub fn reasons(
        &mut self,
        cluster: &Cluster<'_>,
        node: usize,
        info: &NodeInfo,
    ) -> Vec<FilterReason> {
        let pod = self.pending.pod;
        let ahead =
            |other: &&PodView| other.priority >= pod.priority && other.meta.key != pod.meta.key;
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
        if !self.runs(Plugin::VolumeBinding) {
            return Vec::new();
        }
        let choices = self.volumes.choices(cluster, &cluster.nodes[node].view);
        choices.unwrap_or_default()
    }

    const fn runs(&self, plugin: Plugin) -> bool {
        self.pending.profile.filters.contains(plugin)
    }

    fn reasons_without_nominated(
        &self,
        cluster: &Cluster<'_>,
        node: usize,
        info: &NodeInfo,
    ) -> Vec<FilterReason> {
        let Pending { pod, wants, .. } = self.pending;
        let unsupported = &wants.node.unsupported;
        if !unsupported.is_empty() {
            let fields = unsupported.iter().copied();
            return fields.map(FilterReason::Unsupported).collect();
        }
        if let Some(problem) = self
            .volumes
            .problem()
            .filter(|_| self.runs(Plugin::VolumeBinding))
        {
            return vec![problem.clone()];
        }
        let named = self.named.as_ref();
        if named.is_some_and(|names| !names.contains(info.view.name())) {
            return vec![FilterReason::OtherNodes];
        }
        for plugin in Plugin::ALL.into_iter().filter(|plugin| self.runs(*plugin)) {
            if plugin == Plugin::NodeResourcesFit {
                let short = node_resources_fit::filter(pod, info);
                if !short.is_empty() {
                    return short;
                }
            } else if let Some(reason) = self.reason(plugin, cluster, (node, info)) {
                return vec![reason];
            }
        }
        Vec::new()
    }

    /// Returns why a plugin rejects a node.
    fn reason(
        &self,
        plugin: Plugin,
        cluster: &Cluster<'_>,
        (node, info): (usize, &NodeInfo),
    ) -> Option<FilterReason> {
        let Pending {
            pod,
            wants,
            profile,
        } = self.pending;
        let (wants, view) = (&wants.node, &*info.view);
        match plugin {
            Plugin::NodeUnschedulable => node_unschedulable::filter(wants, view),
            Plugin::TaintToleration => taint_toleration::filter(wants, view),
            Plugin::NodeAffinity => node_affinity::filter(&profile.added, wants, view),
            Plugin::NodePorts => node_ports::filter(pod, info),
            Plugin::VolumeRestrictions => self.restrictions.filter(),
            Plugin::NodeVolumeLimits => self.limits.filter(cluster, node),
            Plugin::VolumeBinding => self.volumes.filter(cluster, view),
            Plugin::VolumeZone => self.volumes.filter_zone(view),
            Plugin::PodTopologySpread => self.spread.filter(node),
            Plugin::InterPodAffinity => self.affinity.filter(node),
            _ => None,
        }
    }
}

/// Returns whether a change may let a Pod fit that these plugins have rejected (upstream: queueing hints).
pub fn helps(
    profile: &Profile,
    pod: &PodView,
    rejectors: PluginSet,
    change: &ClusterEvent,
) -> bool {
    let Some(wants) = pod.wants.as_deref() else {
        return false;
    };
    let hint = |plugin| match plugin {
        Plugin::NodeUnschedulable => node_unschedulable::hint(&wants.node, change),
        Plugin::TaintToleration => taint_toleration::hint(&wants.node, change),
        Plugin::NodeAffinity => node_affinity::hint(&profile.added, &wants.node, change),
        Plugin::NodePorts => node_ports::hint(pod, change),
        Plugin::NodeResourcesFit => node_resources_fit::hint(pod, change),
        Plugin::VolumeRestrictions => volume_restrictions::hint(pod, change),
        Plugin::NodeVolumeLimits => node_volume_limits::hint(pod, change),
        Plugin::VolumeBinding => volume_binding::hint(pod, change),
        Plugin::VolumeZone => volume_zone::hint(change),
        Plugin::PodTopologySpread => pod_topology_spread::hint(&profile.spread, pod, wants, change),
        Plugin::InterPodAffinity => inter_pod_affinity::hint(pod, change),
        Plugin::NodeResourcesBalancedAllocation
        | Plugin::ImageLocality
        | Plugin::DefaultPreemption => false,
    };
    let mut plugins = Plugin::ALL.into_iter();
    plugins.any(|plugin| rejectors.contains(plugin) && hint(plugin))
}
