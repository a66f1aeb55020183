//! Reasons why a node cannot take a Pod, in upstream's words.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use crate::plugin::{Plugin, PluginSet};

/// A reason why a node cannot take a Pod. The alternate form (`{:#}`) has details that upstream does not print.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilterReason {
    /// The node is cordoned.
    Unschedulable,
    /// The node has this taint, which the Pod does not tolerate.
    Taint {
        /// The key of the taint.
        key: String,
        /// The value of the taint.
        value: String,
    },
    /// The Pod names other nodes in its node affinity.
    OtherNodes,
    /// The labels of the node do not match the affinity of the profile.
    EnforcedAffinity,
    /// The labels of the node do not match the Pod's selector or affinity.
    NodeAffinity,
    /// A host port of the Pod is in use.
    Ports,
    /// The node has its maximum number of Pods.
    TooManyPods,
    /// The node has too little of a resource left.
    Insufficient {
        /// The name of the resource.
        resource: Cow<'static, str>,
        /// Whether the node has too little even without Pods.
        even_if_empty: bool,
    },
    /// Another Pod uses a claim that only one Pod may use at a time.
    ExclusiveClaim,
    /// No more volumes of a CSI driver can be attached to the node.
    TooManyVolumes,
    /// The claims of the Pod keep it from all nodes, for this reason.
    Claims(String),
    /// A claim is bound to a volume that does not exist.
    MissingVolume,
    /// A volume of the Pod cannot be used on the node.
    VolumeNodeAffinity,
    /// The node has no volume for a claim.
    NoVolume,
    /// A volume of the Pod is in another zone.
    VolumeZone,
    /// The Pod would exceed the skew of a topology spread constraint.
    Spread,
    /// The node lacks the label of a topology spread constraint.
    SpreadLabel,
    /// The domain has no Pod that the Pod's required affinity matches, or the node lacks the label.
    PodAffinity,
    /// The domain has a Pod that the Pod's required anti-affinity matches.
    AntiAffinity,
    /// The domain has a Pod whose required anti-affinity matches the Pod.
    ExistingAntiAffinity,
    /// This field of the Pod has a constraint that is not evaluated. Upstream evaluates all of them.
    Unsupported(&'static str),
    /// Preemption: no Pod of the node has a lower priority.
    NoVictims,
    /// Preemption: what speaks against the node stays without its Pods.
    Unhelpful,
}

impl FilterReason {
    /// Returns the plugin that gives the reason.
    pub const fn plugin(&self) -> Option<Plugin> {
        Some(match self {
            Self::Unschedulable => Plugin::NodeUnschedulable,
            Self::Taint { .. } => Plugin::TaintToleration,
            Self::OtherNodes | Self::EnforcedAffinity | Self::NodeAffinity => Plugin::NodeAffinity,
            Self::Ports => Plugin::NodePorts,
            Self::TooManyPods | Self::Insufficient { .. } => Plugin::NodeResourcesFit,
            Self::ExclusiveClaim => Plugin::VolumeRestrictions,
            Self::TooManyVolumes => Plugin::NodeVolumeLimits,
            Self::Claims(_) | Self::MissingVolume | Self::VolumeNodeAffinity | Self::NoVolume => {
                Plugin::VolumeBinding
            }
            Self::VolumeZone => Plugin::VolumeZone,
            Self::Spread | Self::SpreadLabel => Plugin::PodTopologySpread,
            Self::PodAffinity | Self::AntiAffinity | Self::ExistingAntiAffinity => {
                Plugin::InterPodAffinity
            }
            Self::Unsupported(_) | Self::NoVictims | Self::Unhelpful => return None,
        })
    }

    /// Returns whether removing Pods from the node can help (upstream: not `UnschedulableAndUnresolvable`).
    pub const fn is_resolvable(&self) -> bool {
        match self {
            Self::Ports
            | Self::TooManyPods
            | Self::Insufficient {
                even_if_empty: false,
                ..
            }
            | Self::ExclusiveClaim
            | Self::TooManyVolumes
            | Self::Spread
            | Self::AntiAffinity
            | Self::ExistingAntiAffinity => true,
            Self::Unschedulable
            | Self::Taint { .. }
            | Self::OtherNodes
            | Self::EnforcedAffinity
            | Self::NodeAffinity
            | Self::Insufficient { .. }
            | Self::Claims(_)
            | Self::MissingVolume
            | Self::VolumeNodeAffinity
            | Self::NoVolume
            | Self::VolumeZone
            | Self::SpreadLabel
            | Self::PodAffinity
            | Self::Unsupported(_)
            | Self::NoVictims
            | Self::Unhelpful => false,
        }
    }
}

impl fmt::Display for FilterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::Taint { key, value } if f.alternate() => {
                return write!(f, "node(s) had untolerated taint {{{key}: {value}}}");
            }
            Self::Taint { .. } => "node(s) had untolerated taint(s)",
            Self::OtherNodes => "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            Self::EnforcedAffinity => "node(s) didn't match scheduler-enforced node affinity",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient { resource, .. } => return write!(f, "Insufficient {resource}"),
            Self::ExclusiveClaim => {
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
            }
            Self::TooManyVolumes => "node(s) exceed max volume count",
            Self::Claims(problem) => problem,
            Self::MissingVolume => {
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            }
            Self::VolumeNodeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::NoVolume => "node(s) didn't find available persistent volumes to bind",
            Self::VolumeZone => "node(s) had no available volume zone",
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::SpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
            Self::Unsupported(field) => {
                return write!(
                    f,
                    "node(s) not checked against {field}, which this scheduler does not support"
                );
            }
            Self::NoVictims => "No preemption victims found for incoming pod",
            Self::Unhelpful => "Preemption is not helpful for scheduling",
        })
    }
}

/// The number of nodes by the reasons against them.
#[derive(Debug, Default)]
pub struct Tally {
    counts: HashMap<FilterReason, usize>,
}

impl Tally {
    /// Adds the reasons against some nodes.
    pub fn add<'a>(&mut self, reasons: impl IntoIterator<Item = &'a FilterReason>, nodes: usize) {
        for reason in reasons {
            if let Some(count) = self.counts.get_mut(reason) {
                *count = count.saturating_add(nodes);
            } else if nodes > 0 {
                self.counts.insert(reason.clone(), nodes);
            }
        }
    }

    /// Returns the plugins that gave the reasons.
    pub fn rejectors(&self) -> PluginSet {
        let plugins = self.counts.keys().filter_map(FilterReason::plugin);
        plugins.collect()
    }

    /// Returns the sentence about all nodes, as upstream's `FitError`: reasons in the order of their text.
    pub fn sentence(&self, nodes: usize) -> String {
        let mut texts: HashMap<String, usize> = HashMap::new();
        for (reason, count) in &self.counts {
            let text = texts.entry(reason.to_string()).or_default();
            *text = text.saturating_add(*count);
        }
        // What is wrong with the Pod itself is said without a number of nodes.
        let mut reasons = self.counts.keys();
        if let Some(FilterReason::Claims(problem)) =
            reasons.find(|reason| matches!(reason, FilterReason::Claims(_)))
        {
            return format!("0/{nodes} nodes are available: {problem}.");
        }
        let mut reasons: Vec<_> = texts
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        reasons.sort();
        match reasons.is_empty() {
            true => format!("0/{nodes} nodes are available:"),
            false => format!("0/{nodes} nodes are available: {}.", reasons.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_worded_as_upstream() {
        let insufficient = |even_if_empty| FilterReason::Insufficient {
            resource: "cpu".into(),
            even_if_empty,
        };
        let taint = FilterReason::Taint {
            key: "dedicated".into(),
            value: "db".into(),
        };
        assert_eq!(
            format!("{taint:#}"),
            "node(s) had untolerated taint {dedicated: db}"
        );
        // The words, and whether eviction can help.
        let wording = [
            (
                FilterReason::Unschedulable,
                "node(s) were unschedulable",
                false,
            ),
            (taint, "node(s) had untolerated taint(s)", false),
            (
                FilterReason::OtherNodes,
                "node(s) didn't satisfy plugin(s) [NodeAffinity]",
                false,
            ),
            (
                FilterReason::EnforcedAffinity,
                "node(s) didn't match scheduler-enforced node affinity",
                false,
            ),
            (
                FilterReason::TooManyVolumes,
                "node(s) exceed max volume count",
                true,
            ),
            (
                FilterReason::NodeAffinity,
                "node(s) didn't match Pod's node affinity/selector",
                false,
            ),
            (
                FilterReason::Ports,
                "node(s) didn't have free ports for the requested pod ports",
                true,
            ),
            (FilterReason::TooManyPods, "Too many pods", true),
            (insufficient(false), "Insufficient cpu", true),
            (insufficient(true), "Insufficient cpu", false),
            (
                FilterReason::Spread,
                "node(s) didn't match pod topology spread constraints",
                true,
            ),
            (
                FilterReason::SpreadLabel,
                "node(s) didn't match pod topology spread constraints (missing required label)",
                false,
            ),
            (
                FilterReason::PodAffinity,
                "node(s) didn't match pod affinity rules",
                false,
            ),
            (
                FilterReason::AntiAffinity,
                "node(s) didn't match pod anti-affinity rules",
                true,
            ),
            (
                FilterReason::ExistingAntiAffinity,
                "node(s) didn't satisfy existing pods anti-affinity rules",
                true,
            ),
            (
                FilterReason::NoVictims,
                "No preemption victims found for incoming pod",
                false,
            ),
            (
                FilterReason::Unhelpful,
                "Preemption is not helpful for scheduling",
                false,
            ),
        ];
        for (reason, words, resolvable) in wording {
            assert_eq!(reason.to_string(), words);
            assert_eq!(reason.is_resolvable(), resolvable, "{words}");
        }
    }

    #[test]
    fn a_sentence_counts_the_nodes_by_text() {
        let taint = |key: &str| FilterReason::Taint {
            key: key.into(),
            value: String::new(),
        };
        let mut tally = Tally::default();
        tally.add(&[FilterReason::TooManyPods], 2);
        tally.add(&[taint("a")], 1);
        tally.add(&[taint("b"), FilterReason::TooManyPods], 1);
        tally.add(&[FilterReason::Ports], 0);
        assert_eq!(
            tally.sentence(4),
            "0/4 nodes are available: 2 node(s) had untolerated taint(s), 3 Too many pods."
        );
        let plugins = [Plugin::TaintToleration, Plugin::NodeResourcesFit];
        assert_eq!(tally.rejectors(), plugins.into_iter().collect());
        assert!(!tally.rejectors().contains(Plugin::NodePorts));
        assert!(Tally::default().rejectors().is_empty());
    }
}
