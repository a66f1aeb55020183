//! A view of a Pod. Details are kept only of Pods that a Job controls or may adopt.
#![warn(clippy::arithmetic_side_effects)]

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::{Labels, Meta, condition, owner, time};
use setpoint_proto::core::{self, ContainerStatus};
use setpoint_proto::meta::Time;
use setpoint_proto::{Resource as _, batch};
use setpoint_workload::{PodView, sidecars};

/// The finalizer of Pods that are not counted yet.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and label with the completion index.
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The annotation with the number of failures of the index before the Pod that count.
pub(crate) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation with the number of failures of the index before the Pod that the failure policy ignores.
pub(crate) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// A Pod with what Jobs need to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPodView {
    /// What controllers of workloads read. Of Pods of other controllers, it has no labels.
    pub base: PodView,
    details: Option<Box<Details>>,
}

/// The fields of a Pod that only Jobs read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The key of its Job, or the namespace of an orphan.
    tag: Box<str>,
    /// The phase.
    pub phase: Box<str>,
    /// Whether it has the finalizer [`TRACKING`].
    pub tracked: bool,
    /// The other finalizers.
    pub finalizers: Vec<String>,
    /// The completion index.
    pub index: Option<usize>,
    /// The failures of its index before it.
    pub failures: Failures,
    /// The number of restarts of all containers.
    pub restarts: i32,
    /// When it ended, as far as its status says so.
    pub ended: Timestamp,
    /// The containers that ended with another exit code than zero, init containers last.
    pub exits: Vec<(Box<str>, i32)>,
    /// Types and statuses of its conditions.
    pub conditions: Vec<(Box<str>, Box<str>)>,
}

/// The number of failures of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Those that count.
    pub counted: i32,
    /// Those that the failure policy ignores.
    pub ignored: i32,
}

impl Failures {
    /// Returns the number of all failures.
    pub const fn all(self) -> i32 {
        self.counted.saturating_add(self.ignored)
    }
}

impl View for JobPodView {
    type Object = core::Pod;

    fn of(pod: core::Pod) -> Self {
        let controller = owner::controller_of(&pod.metadata);
        let of_job = controller.is_none_or(|owner| {
            owner.kind == batch::Job::KIND && owner.api_version == batch::Job::API_VERSION
        });
        let details = of_job.then(|| Box::new(Details::of(&pod)));
        let mut base = PodView::of(pod);
        if details.is_none() {
            base.labels = Labels::default();
        }
        Self { base, details }
    }

    fn meta(&self) -> &Meta {
        &self.base.meta
    }

    /// Pods are indexed by the key of their Job, orphans by namespace.
    fn tag(&self) -> Option<&str> {
        self.details.as_ref().map(|details| &*details.tag)
    }
}

impl Details {
    fn of(pod: &core::Pod) -> Self {
        let (meta, status) = (&pod.metadata, &pod.status);
        let number = |name| number(meta.annotations.get(name).map(String::as_str));
        let statuses = || {
            status
                .container_statuses
                .iter()
                .chain(&status.init_container_statuses)
        };
        let mut finalizers = meta.finalizers.clone();
        finalizers.retain(|finalizer| finalizer != TRACKING);
        let index = meta.annotations.get(INDEX);
        Self {
            tag: match owner::controller_of(meta) {
                Some(owner) => format!("{}/{}", meta.namespace, owner.name).into(),
                None => meta.namespace.clone().into(),
            },
            phase: status.phase.as_str().into(),
            tracked: finalizers.len() < meta.finalizers.len(),
            finalizers,
            index: index.and_then(|index| index.parse().ok()),
            failures: Failures {
                counted: number(FAILURES),
                ignored: number(IGNORED_FAILURES),
            },
            restarts: statuses().fold(0, |sum, one| sum.saturating_add(one.restart_count)),
            ended: ended(pod),
            exits: statuses().filter_map(exit).collect(),
            conditions: status
                .conditions
                .iter()
                .map(|one| (one.r#type.as_str().into(), one.status.as_str().into()))
                .collect(),
        }
    }
}

/// Parses a number of failures; anything but a positive number is zero.
fn number(text: Option<&str>) -> i32 {
    let number: Option<i32> = text.and_then(|text| text.parse().ok());
    number.unwrap_or_default().max(0)
}

fn exit(container: &ContainerStatus) -> Option<(Box<str>, i32)> {
    let terminated = container.state.terminated.as_ref()?;
    (terminated.exit_code != 0).then(|| (container.name.as_str().into(), terminated.exit_code))
}

/// Returns when a Pod ended: its last container, else when it became unready, was deleted, or was created.
fn ended(pod: &core::Pod) -> Timestamp {
    let meta = &pod.metadata;
    let unready = condition::get(&pod.status.conditions, "Ready")
        .filter(|ready| ready.status == condition::FALSE)
        .and_then(|ready| ready.last_transition_time.timestamp());
    let deleted = meta
        .deletion_timestamp
        .as_ref()
        .and_then(Time::timestamp)
        .map(|deadline| {
            let grace = meta.deletion_grace_period_seconds.unwrap_or_default();
            time::seconds_after(deadline, grace.saturating_neg())
        });
    let known = containers_ended(pod).or(unready).or(deleted);
    known
        .or(meta.creation_timestamp.timestamp())
        .unwrap_or_default()
}

/// Returns when the last container or sidecar ended; `None` if one has not.
fn containers_ended(pod: &core::Pod) -> Option<Timestamp> {
    let statuses = pod.status.container_statuses.iter().chain(sidecars(pod));
    let ends: Option<Vec<_>> = statuses
        .map(|status| status.state.terminated.as_ref()?.finished_at.timestamp())
        .collect();
    ends?.into_iter().max()
}

impl JobPodView {
    /// Returns the fields that only Jobs read. Every Pod that the controller decides about has them.
    pub fn details(&self) -> &Details {
        static NONE: std::sync::LazyLock<Details> = std::sync::LazyLock::new(Details::default);
        self.details.as_deref().unwrap_or(&NONE)
    }

    /// Returns whether its controller is a Job, or it is an orphan.
    pub(crate) const fn is_of_job(&self) -> bool {
        self.details.is_some()
    }

    /// Returns whether it has succeeded.
    pub fn has_succeeded(&self) -> bool {
        &*self.details().phase == "Succeeded"
    }

    /// Returns whether it has failed.
    pub fn has_failed(&self) -> bool {
        &*self.details().phase == "Failed"
    }

    /// Returns whether it has the finalizer [`TRACKING`].
    pub fn is_tracked(&self) -> bool {
        self.details().tracked
    }

    /// Returns the name of the Job in the labels of an orphan; empty if it has none.
    pub(crate) fn job_name(&self) -> &str {
        use setpoint_model::labels::Lookup as _;
        self.base.labels.value(JOB_NAME).unwrap_or_default()
    }
}
