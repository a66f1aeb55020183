//! A view of a Job.
#![warn(clippy::arithmetic_side_effects)]

use jiff::Timestamp;
use setpoint_controller::{Owns, View, selector};
use setpoint_model::condition::{self, TRUE};
use setpoint_model::{Key, Meta, Selector};
use setpoint_proto::batch::{
    Job, JobCondition, JobStatus, PodFailurePolicyRule, SuccessPolicyRule,
};
use setpoint_proto::core::PodTemplateSpec;

use crate::JobPodView;

/// The name of this controller in `managedBy`.
const CONTROLLER_NAME: &str = "kubernetes.io/job-controller";

pub(crate) const COMPLETE: &str = "Complete";
pub(crate) const FAILED: &str = "Failed";
pub(crate) const FAILURE_TARGET: &str = "FailureTarget";
pub(crate) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(crate) const SUSPENDED: &str = "Suspended";

/// The fields of a Job that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// The metadata.
    pub meta: Meta,
    /// The parsed selector.
    pub selector: Selector,
    /// The Pod template.
    pub template: PodTemplateSpec,
    /// The largest number of active Pods.
    pub parallelism: usize,
    /// The number of Pods that must succeed; `None` if one success ends the Job.
    pub completions: Option<usize>,
    /// Whether each completion has an index.
    pub indexed: bool,
    /// Whether it must have no active Pods.
    pub suspended: bool,
    /// The number of failures that do not fail the Job.
    pub backoff_limit: usize,
    /// The number of failures that do not fail an index; `None` if indexes do not fail.
    pub backoff_limit_per_index: Option<i32>,
    /// The number of failed indexes that do not fail the Job.
    pub max_failed_indexes: Option<usize>,
    /// What to do about failures; the first rule that matches applies.
    pub failure_rules: Vec<PodFailurePolicyRule>,
    /// The indexes that are enough.
    pub success_rules: Vec<SuccessPolicyRule>,
    /// Whether a terminating Pod is replaced only when it has ended.
    pub replaces_ended_only: bool,
    /// Seconds after the start at which it fails.
    pub deadline_seconds: Option<i64>,
    /// Seconds after its end at which it is deleted.
    pub ttl_seconds: Option<i64>,
    /// Whether its Pods restart their containers when they fail.
    pub restarts_containers: bool,
    /// Whether another controller manages it.
    pub external: bool,
    /// Whether it asks for gang scheduling, which is not supported.
    pub gang: bool,
    /// The status that was last written.
    pub status: JobStatus,
}

/// How a Job ends, from the condition that is set before its Pods are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `SuccessCriteriaMet`.
    Success,
    /// `FailureTarget`.
    Failure,
}

impl View for JobView {
    type Object = Job;

    fn of(job: Job) -> Self {
        let Job {
            metadata,
            spec,
            status,
        } = job;
        let manager = spec.managed_by.as_deref();
        let replacement = spec.pod_replacement_policy.as_deref();
        Self {
            meta: Meta::of(&metadata),
            selector: selector(spec.selector.as_ref()),
            parallelism: count(spec.parallelism.unwrap_or(1)),
            completions: spec.completions.map(count),
            indexed: spec.completion_mode.as_deref() == Some("Indexed"),
            suspended: spec.suspend == Some(true),
            backoff_limit: count(spec.backoff_limit.unwrap_or(6)),
            backoff_limit_per_index: spec.backoff_limit_per_index,
            max_failed_indexes: spec.max_failed_indexes.map(count),
            replaces_ended_only: replacement == Some("Failed") || spec.pod_failure_policy.is_some(),
            failure_rules: spec.pod_failure_policy.unwrap_or_default().rules,
            success_rules: spec.success_policy.unwrap_or_default().rules,
            deadline_seconds: spec.active_deadline_seconds,
            ttl_seconds: spec.ttl_seconds_after_finished.map(i64::from),
            restarts_containers: spec.template.spec.restart_policy == "OnFailure",
            external: manager.is_some_and(|manager| manager != CONTROLLER_NAME),
            gang: spec.scheduling.is_some(),
            template: spec.template,
            status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}

impl Owns<JobPodView> for JobView {
    fn selects(&self, pod: &JobPodView) -> bool {
        self.selector.matches(&pod.base.labels)
    }
}

impl JobView {
    /// Returns the view of a Job that is gone. It has no Pods, and nothing is written to it.
    pub(crate) fn gone(key: &Key) -> Self {
        let mut job = Job::default();
        (job.metadata.namespace, job.metadata.name) = (key.namespace.clone(), key.name.clone());
        Self {
            external: true,
            ..Self::of(job)
        }
    }

    /// Returns whether this controller manages its Pods: no other does, and it has not finished.
    pub fn is_managed(&self) -> bool {
        !self.external && self.finished().is_none()
    }

    /// Returns whether it would adopt an orphan.
    pub(crate) fn adopts(&self, pod: &JobPodView) -> bool {
        self.is_managed() && !self.meta.deleting && self.selects(pod)
    }

    /// Returns the condition `Complete` or `Failed` if it holds.
    pub fn finished(&self) -> Option<&JobCondition> {
        self.condition(COMPLETE).or_else(|| self.condition(FAILED))
    }

    /// Returns how it ends, as its status says.
    pub fn ending(&self) -> Option<(Ending, &JobCondition)> {
        let success = self
            .condition(SUCCESS_CRITERIA_MET)
            .map(|met| (Ending::Success, met));
        success.or_else(|| {
            self.condition(FAILURE_TARGET)
                .map(|met| (Ending::Failure, met))
        })
    }

    fn condition(&self, kind: &str) -> Option<&JobCondition> {
        let condition = condition::get(&self.status.conditions, kind);
        condition.filter(|condition| condition.status == TRUE)
    }

    /// Returns whether an index is known and below the completions.
    pub fn has_index(&self, index: Option<usize>) -> bool {
        index.is_some_and(|index| index < self.index_count())
    }

    /// Returns the number of indexes.
    pub fn index_count(&self) -> usize {
        self.completions.unwrap_or_default()
    }

    /// Returns when it started; `None` if it has not, or is suspended.
    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.status
            .start_time
            .as_ref()
            .and_then(|start| start.timestamp())
    }

    /// Returns the prefix of the names of its Pods.
    pub(crate) fn prefix(&self, index: Option<usize>) -> String {
        /// The longest prefix that leaves room for a suffix of five letters.
        const LONGEST: usize = 58;
        let name = &self.meta.key.name;
        let Some(index) = index else {
            return format!("{name}-");
        };
        let end = format!("-{index}-");
        let kept: String = name
            .chars()
            .take(LONGEST.saturating_sub(end.len()))
            .collect();
        kept + &end
    }
}
