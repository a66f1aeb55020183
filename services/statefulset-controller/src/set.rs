//! A view of a StatefulSet, in which unset fields have their defaults.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::ops::Range;

use setpoint_controller::{Owns, View, selector};
use setpoint_model::{Meta, Selector, percent};
use setpoint_proto::apps::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use setpoint_proto::core::{PersistentVolumeClaim, PodTemplateSpec};
use setpoint_proto::meta::IntOrString;
use setpoint_workload::{PodView, RevisionView, Snapshot};

const DELETE: &str = "Delete";

/// The fields of a StatefulSet that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct StatefulSetView {
    /// The metadata.
    pub meta: Meta,
    /// The ordinals of its Pods.
    pub ordinals: Range<i64>,
    /// The parsed selector.
    pub selector: Selector,
    /// The labels that the selector requires, which the claims get.
    pub match_labels: BTreeMap<String, String>,
    /// The Pod template.
    pub template: PodTemplateSpec,
    /// The template as a revision stores it.
    pub snapshot: Snapshot,
    /// The name of the headless Service.
    pub service: String,
    /// The templates of the claims of each Pod.
    pub claim_templates: Vec<PersistentVolumeClaim>,
    /// When claims are deleted.
    pub retention: Retention,
    /// Whether Pods are created and deleted without an order.
    pub parallel: bool,
    /// The update strategy.
    pub strategy: Strategy,
    /// Seconds for which a Pod must be ready to count as available.
    pub min_ready_seconds: i32,
    /// The number of revisions that are kept besides those of Pods.
    pub history_limit: i32,
    /// The status that was last written.
    pub status: StatefulSetStatus,
}

/// When the claims of a Pod are deleted; they are retained otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// With the StatefulSet.
    pub delete_with_set: bool,
    /// When the StatefulSet is scaled down below the Pod's ordinal.
    pub delete_on_scale_down: bool,
}

/// How Pods of an old template are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// When the user deletes them.
    OnDelete,
    /// One after another, from the highest ordinal.
    Rolling {
        /// The number of Pods with the lowest ordinals that keep the old template; `None` without `rollingUpdate`.
        partition: Option<i64>,
        /// The maximum number of Pods that are unavailable during an update; `None` if unset. Upstream has it behind
        /// the gate `MaxUnavailableStatefulSet`, which is off by default.
        max_unavailable: Option<usize>,
    },
}

impl View for StatefulSetView {
    type Object = StatefulSet;

    fn of(set: StatefulSet) -> Self {
        let spec = set.spec;
        Self {
            meta: Meta::of(&set.metadata),
            ordinals: ordinals(&spec),
            selector: selector(spec.selector.as_ref()),
            retention: Retention::of(&spec),
            parallel: spec.pod_management_policy == "Parallel",
            strategy: Strategy::of(&spec),
            match_labels: spec.selector.unwrap_or_default().match_labels,
            snapshot: Snapshot::of(&spec.template),
            template: spec.template,
            service: spec.service_name,
            claim_templates: spec.volume_claim_templates,
            min_ready_seconds: spec.min_ready_seconds,
            history_limit: spec.revision_history_limit.unwrap_or(10),
            status: set.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn ordinals(spec: &StatefulSetSpec) -> Range<i64> {
    let start = i64::from(spec.ordinals.map_or(0, |ordinals| ordinals.start)).max(0);
    start..start.saturating_add(i64::from(desired_replicas(spec)))
}

/// Returns the desired number of Pods; negative values count as zero.
fn desired_replicas(spec: &StatefulSetSpec) -> i32 {
    spec.replicas.unwrap_or(1).max(0)
}

impl Retention {
    fn of(spec: &StatefulSetSpec) -> Self {
        let policy = spec.persistent_volume_claim_retention_policy.clone();
        let policy = policy.unwrap_or_default();
        Self {
            delete_with_set: policy.when_deleted == DELETE,
            delete_on_scale_down: policy.when_scaled == DELETE,
        }
    }
}

impl Strategy {
    fn of(spec: &StatefulSetSpec) -> Self {
        if spec.update_strategy.r#type == "OnDelete" {
            return Self::OnDelete;
        }
        let rolling = spec.update_strategy.rolling_update.as_ref();
        let max_unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        Self::Rolling {
            partition: rolling.map(|rolling| rolling.partition.unwrap_or_default().into()),
            max_unavailable: max_unavailable.map(|max| resolve(max, desired_replicas(spec))),
        }
    }
}

/// Returns a number of Pods of at least one. Percentages are rounded down, as upstream does.
fn resolve(max_unavailable: &IntOrString, replicas: i32) -> usize {
    let number = percent::resolve(max_unavailable, replicas, false).unwrap_or(1);
    usize::try_from(number).unwrap_or_default().max(1)
}

impl Owns<PodView> for StatefulSetView {
    /// A Pod needs a name of the set, too: two Pods with the same ordinal are impossible.
    fn selects(&self, pod: &PodView) -> bool {
        self.selector.matches(&pod.labels) && self.ordinal(&pod.meta.key.name).is_some()
    }
}

impl Owns<RevisionView> for StatefulSetView {
    fn selects(&self, revision: &RevisionView) -> bool {
        self.selector.matches(&revision.meta.labels)
    }
}

impl StatefulSetView {
    /// Returns the ordinal in the name of a Pod; `None` if it is not a name of a Pod of the set.
    pub fn ordinal(&self, pod: &str) -> Option<i64> {
        let digits = pod
            .strip_prefix(&self.meta.key.name)
            .and_then(|rest| rest.strip_prefix('-'))?;
        let ordinal = i64::from(digits.parse::<u32>().ok()?);
        (self.pod_name(ordinal) == pod).then_some(ordinal)
    }

    /// Returns the name of the Pod with this ordinal.
    pub fn pod_name(&self, ordinal: i64) -> String {
        format!("{}-{ordinal}", self.meta.key.name)
    }

    /// Returns the name of a claim of the Pod with this ordinal.
    pub fn claim_name(&self, template: &PersistentVolumeClaim, ordinal: i64) -> String {
        let (template, set) = (&template.metadata.name, &self.meta.key.name);
        format!("{template}-{set}-{ordinal}")
    }

    /// Returns whether a claim has a name of a claim of the set.
    pub fn names_claim(&self, claim: &str) -> bool {
        let of_template = |template: &PersistentVolumeClaim| {
            let pod = claim
                .strip_prefix(&template.metadata.name)
                .and_then(|rest| rest.strip_prefix('-'));
            pod.is_some_and(|pod| self.ordinal(pod).is_some())
        };
        self.claim_templates.iter().any(of_template)
    }
}
