//! Job: a selector and labels that are generated from its uid, and a spec that is mostly immutable.

mod change;
mod indexes;
mod policies;
mod spec;
mod status;
mod waits;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::{condition, names};
use setpoint_proto::batch::Job;
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Role, StoredKind, age};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_pod_names};
use crate::waits::Records;

pub(super) use spec::{fill_defaults, validate as validate_spec, warn as warn_of_spec};

/// The labels with the uid of the Job; the first has no prefix for compatibility.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
/// The labels with the name of the Job, likewise.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

const INDEXED: &str = "Indexed";
const NEVER: &str = "Never";

impl StoredKind for Job {
    const ROLE: Role = Role::Workload;
    const ORPHANS_BY_DEFAULT: bool = true;
    const ORPHAN_WARNING: Option<&'static str> = Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
    );
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        fill_labels(self);
        spec::fill_defaults(&mut self.spec);
        spec::fill_job_defaults(&mut self.spec);
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        if self.spec.manual_selector != Some(true) {
            generate_selector(self);
            // The template may have had no labels before.
            fill_labels(self);
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        change::validate_generated(self, errors);
        spec::validate_with_selector(&self.spec, errors);
        validate_host_names(self, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        // Upstream validates the spec twice, too.
        spec::validate_with_selector(&self.spec, errors);
        change::validate(self, old, errors);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        status::validate(self, old, errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        if old.is_none() {
            warn_of_pod_names(&self.metadata.name, warnings);
        }
        if template::is_new_intent(self, old) {
            spec::warn(&self.spec, &FieldPath::root("spec"), warnings);
        }
    }

    fn cell(&self, column: &str, now: Timestamp) -> Option<Value> {
        let (spec, template) = (&self.spec, &self.spec.template);
        Some(match column {
            "Status" => phase(self).into(),
            "Completions" => completions(self).into(),
            "Duration" => duration(self, now).into(),
            _ => return template::cell(column, template, spec.selector.as_ref()),
        })
    }

    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        waits::waits(self)
    }
}

/// Sets the labels of a Job without any to those of its template.
fn fill_labels(job: &mut Job) {
    if job.metadata.labels.is_empty() {
        let labels = &job.spec.template.metadata.labels;
        job.metadata.labels.clone_from(labels);
    }
}

/// Adds the labels to the template, and selects the uid. Labels that the user has set are refused later if they differ.
fn generate_selector(job: &mut Job) {
    let (name, uid) = (&job.metadata.name, &job.metadata.uid);
    let labels = &mut job.spec.template.metadata.labels;
    for (keys, value) in [(NAME_LABELS, name), (UID_LABELS, uid)] {
        for key in keys {
            labels.entry(key.into()).or_insert_with(|| value.clone());
        }
    }
    let selector = job.spec.selector.get_or_insert_default();
    let selected = selector.match_labels.entry(UID_LABELS[1].into());
    selected.or_insert_with(|| uid.clone());
}

/// Validates that the Pods of an indexed Job, which are named by their index, can have their name as their host name.
fn validate_host_names(job: &Job, errors: &mut FieldErrors) {
    let count = job.spec.completions.unwrap_or_default();
    if !spec::is_indexed(&job.spec) || count <= 0 {
        return;
    }
    let name = &job.metadata.name;
    let last = format!("{name}-{}", count.saturating_sub(1));
    if !names::validate_dns_label(&last).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {last}");
        errors.invalid(&FieldPath::root("metadata").field("name"), name, detail);
    }
}

fn phase(job: &Job) -> &'static str {
    let has = |kind: &str| condition::is_true(&job.status.conditions, kind);
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if job.metadata.deletion_timestamp.is_some() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Job) -> String {
    let succeeded = job.status.succeeded;
    match (job.spec.completions, job.spec.parallelism.unwrap_or(0)) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: &Job, now: Timestamp) -> String {
    let (start, end) = (&job.status.start_time, &job.status.completion_time);
    let end = end.as_ref().and_then(|end| end.timestamp()).unwrap_or(now);
    match start {
        None => String::new(),
        Some(start) => age::since_time(Some(start), end),
    }
}
