//! The plugins by name, and sets of them.

use std::fmt;

/// The maximum score that a plugin gives to a node.
pub const MAX_NODE_SCORE: i64 = 100;

/// A plugin, named as upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Plugin {
    /// Rejects cordoned nodes.
    NodeUnschedulable,
    /// Rejects nodes with taints that the Pod does not tolerate.
    TaintToleration,
    /// Rejects nodes without the labels that the Pod requires.
    NodeAffinity,
    /// Rejects nodes on which host ports of the Pod are taken.
    NodePorts,
    /// Rejects nodes with too little of a resource left.
    NodeResourcesFit,
    /// Rejects all nodes while another Pod uses a claim that is exclusive.
    VolumeRestrictions,
    /// Rejects nodes to which no more volumes of a CSI driver can be attached.
    NodeVolumeLimits,
    /// Rejects nodes on which volumes cannot be used, and all nodes while claims have to be bound.
    VolumeBinding,
    /// Rejects nodes of other zones than those of volumes.
    VolumeZone,
    /// Rejects nodes that violate a topology spread constraint.
    PodTopologySpread,
    /// Rejects nodes that violate affinity or anti-affinity, of the Pod or of others.
    InterPodAffinity,
    /// Prefers nodes whose CPU and memory the Pod uses in equal shares.
    NodeResourcesBalancedAllocation,
    /// Prefers nodes that have the Pod's images.
    ImageLocality,
    /// Makes room by removing Pods of lower priority.
    DefaultPreemption,
}

impl Plugin {
    /// All of them; those that filter in their order.
    pub const ALL: [Self; 14] = [
        Self::NodeUnschedulable,
        Self::TaintToleration,
        Self::NodeAffinity,
        Self::NodePorts,
        Self::NodeResourcesFit,
        Self::VolumeRestrictions,
        Self::NodeVolumeLimits,
        Self::VolumeBinding,
        Self::VolumeZone,
        Self::PodTopologySpread,
        Self::InterPodAffinity,
        Self::NodeResourcesBalancedAllocation,
        Self::ImageLocality,
        Self::DefaultPreemption,
    ];

    /// Returns the plugin of a name.
    pub fn named(name: &str) -> Option<Self> {
        let mut plugins = Self::ALL.into_iter();
        plugins.find(|plugin| plugin.to_string() == name)
    }

    /// Returns whether it filters nodes.
    pub const fn filters(self) -> bool {
        !matches!(
            self,
            Self::NodeResourcesBalancedAllocation | Self::ImageLocality | Self::DefaultPreemption
        )
    }

    /// Returns the default weight of its score, upstream's; `None` if it does not score.
    pub const fn default_weight(self) -> Option<i64> {
        match self {
            Self::TaintToleration => Some(3),
            Self::NodeAffinity | Self::PodTopologySpread | Self::InterPodAffinity => Some(2),
            Self::NodeResourcesFit
            | Self::NodeResourcesBalancedAllocation
            | Self::ImageLocality => Some(1),
            _ => None,
        }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A set of plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginSet(u16);

impl PluginSet {
    /// All plugins.
    pub const ALL: Self = Self(u16::MAX);

    /// Adds a plugin.
    pub const fn add(&mut self, plugin: Plugin) {
        self.0 |= 1 << plugin as u16;
    }

    /// Removes a plugin.
    pub const fn remove(&mut self, plugin: Plugin) {
        self.0 &= !(1 << plugin as u16);
    }

    /// Returns whether a plugin is one of them.
    pub const fn contains(self, plugin: Plugin) -> bool {
        self.0 & (1 << plugin as u16) != 0
    }

    /// Returns whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Plugin> for PluginSet {
    fn from_iter<I: IntoIterator<Item = Plugin>>(plugins: I) -> Self {
        let mut set = Self::default();
        plugins.into_iter().for_each(|plugin| set.add(plugin));
        set
    }
}
