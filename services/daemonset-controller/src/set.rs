//! A view of a DaemonSet.
#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;

use setpoint_controller::{Owns, View, selector};
use setpoint_model::placement::{self, tolerates};
use setpoint_model::{Meta, Selector, percent};
use setpoint_proto::apps::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use setpoint_proto::core::{PodSpec, PodTemplateSpec, Toleration};
use setpoint_proto::meta::IntOrString;
use setpoint_workload::history::Name;
use setpoint_workload::{PodView, RevisionView, Snapshot};

use crate::NodeView;
use crate::node::executes;

/// The annotation with the number of the template, which the gateway counts.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The taints that every Pod of a DaemonSet tolerates, without an end: problems of its node do not end it.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Tolerated in addition by Pods that use the network of their node.
const TOLERATED_ON_HOST_NETWORK: (&str, &str) =
    ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The fields of a DaemonSet that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonSetView {
    /// The metadata.
    pub meta: Meta,
    /// The parsed selector.
    pub selector: Selector,
    /// The template of the Pods, with the tolerations that they get.
    pub template: PodTemplateSpec,
    /// The template as it was written, for comparisons with revisions.
    pub data: Snapshot,
    /// The update strategy.
    pub strategy: Strategy,
    /// Seconds for which a Pod must be ready to count as available.
    pub min_ready_seconds: i32,
    /// The number of old revisions that are kept for rollbacks.
    pub history_limit: usize,
    /// The status that was last written.
    pub status: DaemonSetStatus,
}

/// An update strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// A Pod gets the new template once the user has deleted the old one.
    OnDelete,
    /// Pods are replaced node by node.
    Rolling {
        /// The nodes that may have an old and a new Pod at once: a number, or a percentage of the nodes.
        surge: IntOrString,
        /// The nodes that may be without an available Pod.
        unavailable: IntOrString,
    },
}

/// Whether a DaemonSet runs on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It should run on the node.
    Run,
    /// A Pod on the node may stay, but none is created: a taint with the effect NoSchedule is not tolerated.
    Stay,
    /// It must not run on the node.
    Leave,
}

impl View for DaemonSetView {
    type Object = DaemonSet;

    fn of(set: DaemonSet) -> Self {
        let spec = set.spec;
        let data = Snapshot::of(&spec.template);
        let strategy = Strategy::of(&spec);
        let mut template = spec.template;
        add_tolerations(&mut template.spec);
        Self {
            meta: Meta::of(&set.metadata),
            selector: selector(spec.selector.as_ref()),
            template,
            data,
            strategy,
            min_ready_seconds: spec.min_ready_seconds,
            history_limit: usize::try_from(spec.revision_history_limit.unwrap_or(10))
                .unwrap_or_default(),
            status: set.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Strategy {
    fn of(spec: &DaemonSetSpec) -> Self {
        if spec.update_strategy.r#type == "OnDelete" {
            return Self::OnDelete;
        }
        let rolling = spec.update_strategy.rolling_update.clone();
        let rolling = rolling.unwrap_or_default();
        Self::Rolling {
            surge: rolling.max_surge.unwrap_or_else(|| IntOrString::int(0)),
            unavailable: rolling
                .max_unavailable
                .unwrap_or_else(|| IntOrString::int(1)),
        }
    }

    /// Returns the numbers of nodes for a surge and for unavailability if the set should run on `desired` nodes. Both
    /// percentages are rounded up, as upstream does. One of the numbers is positive, or no step would be possible.
    pub(crate) fn limits(&self, desired: usize) -> (usize, usize) {
        let Self::Rolling { surge, unavailable } = self else {
            return (0, 0);
        };
        let desired = i32::try_from(desired).unwrap_or(i32::MAX);
        let resolve = |number| {
            let number = percent::resolve(number, desired, true).unwrap_or_default();
            usize::try_from(number).unwrap_or_default()
        };
        match (resolve(surge), resolve(unavailable)) {
            (0, 0) => (0, 1),
            limits => limits,
        }
    }

    /// Returns whether a node may have two Pods.
    pub(crate) fn allows_surge(&self) -> bool {
        self.limits(1).0 > 0
    }
}

impl DaemonSetView {
    /// Returns the prefix of the names of its Pods.
    pub fn prefix(&self) -> String {
        format!("{}-", self.meta.key.name)
    }

    /// Returns the number of the template, for the label `pod-template-generation`; `None` without a valid annotation.
    pub(crate) fn template_generation(&self) -> Option<i64> {
        self.meta.annotation(TEMPLATE_GENERATION)?.parse().ok()
    }

    /// Returns the name of a revision of the template. It is taken by a revision of other data or of another owner;
    /// orphans that the selector matches are adopted. `named` returns the revision with a name.
    pub fn revision_name(&self, named: impl Fn(&str) -> Option<Arc<RevisionView>>) -> Name {
        let usable = |revision: &RevisionView| {
            let orphan = || revision.meta.owner.is_none() && self.selects(revision);
            revision.data == self.data && (revision.meta.is_owned_by(&self.meta.uid) || orphan())
        };
        let taken = |name: &str| named(name).is_some_and(|revision| !usable(&revision));
        let collisions = self.status.collision_count.unwrap_or_default();
        self.data.name(&self.meta, collisions, taken)
    }

    /// Returns whether the set runs on a node.
    pub fn placement(&self, node: &NodeView) -> Placement {
        let spec = &self.template.spec;
        let named = spec.node_name.is_empty() || spec.node_name == node.name();
        let (terms, labels) = (placement::required_terms(spec), &node.meta.labels);
        if !named || !placement::is_wanted(&spec.node_selector, terms, node.name(), labels) {
            return Placement::Leave;
        }
        let taints = node.taints.iter();
        let mut untolerated = taints.filter(|taint| !tolerates(&spec.tolerations, taint));
        match untolerated.next() {
            None => Placement::Run,
            Some(taint) if executes(taint) || untolerated.any(executes) => Placement::Leave,
            Some(_) => Placement::Stay,
        }
    }
}

impl Owns<PodView> for DaemonSetView {
    fn selects(&self, pod: &PodView) -> bool {
        self.selector.matches(&pod.labels)
    }
}

impl Owns<RevisionView> for DaemonSetView {
    fn selects(&self, revision: &RevisionView) -> bool {
        self.selector.matches(&revision.meta.labels)
    }
}

/// Adds the tolerations of every Pod of a DaemonSet. One that the user has written for a limited time becomes
/// unlimited.
fn add_tolerations(spec: &mut PodSpec) {
    let on_host = spec.host_network.then_some(TOLERATED_ON_HOST_NETWORK);
    for (key, effect) in TOLERATED.into_iter().chain(on_host) {
        let toleration = Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            effect: effect.to_owned(),
            ..Default::default()
        };
        let same = |known: &Toleration| {
            let unlimited = Toleration {
                toleration_seconds: None,
                ..known.clone()
            };
            unlimited == toleration
        };
        match spec.tolerations.iter().position(same) {
            Some(index) => spec.tolerations[index] = toleration,
            None => spec.tolerations.push(toleration),
        }
    }
}
