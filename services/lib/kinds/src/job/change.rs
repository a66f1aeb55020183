//! Validation of the generated selector, and of changes of the spec.

use std::collections::BTreeMap;

use setpoint_model::condition;
use setpoint_model::selector::Selector;
use setpoint_proto::batch::Job;
use setpoint_proto::core::{Affinity, Container, PodSpec, PodTemplateSpec};

use super::{NAME_LABELS, UID_LABELS, spec};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// Validates that the selector and the labels of the template are those that were generated.
pub fn validate_generated(job: &Job, errors: &mut FieldErrors) {
    let Some(selector) = &job.spec.selector else {
        return;
    };
    if job.spec.manual_selector == Some(true) {
        return;
    }
    let (meta, path) = (&job.metadata, FieldPath::root("spec"));
    let own = [
        (UID_LABELS[0], &meta.uid),
        (NAME_LABELS[0], &meta.name),
        (UID_LABELS[1], &meta.uid),
        (NAME_LABELS[1], &meta.name),
    ];
    let labels = &job.spec.template.metadata.labels;
    let at = path.field("template");
    let at = at.field("metadata");
    let at = at.field("labels");
    for (key, value) in own {
        let detail = format!("must be '{value}'");
        match labels.get(key) {
            None => errors.required(&at.key(key), &detail),
            Some(found) if found != value => errors.invalid(&at.key(key), labels, detail),
            Some(_) => {}
        }
    }
    let own = own.map(|(key, value)| (key.to_owned(), value.clone()));
    let own = BTreeMap::from(own);
    if Selector::from_label_selector(selector).is_ok_and(|parsed| !parsed.matches(&own)) {
        let detail = "`selector` not auto-generated";
        errors.invalid(&path.field("selector"), selector, detail);
    }
}

/// Validates a change of the spec.
pub fn validate(job: &Job, was: &Job, errors: &mut FieldErrors) {
    let (new, old, path) = (&job.spec, &was.spec, FieldPath::root("spec"));
    validate_completions(job, was, &path.field("completions"), errors);
    errors.immutable(&path.field("selector"), &new.selector, &old.selector);
    validate_template(job, was, &path, errors);
    let (at, to) = (path.field("completionMode"), &new.completion_mode);
    errors.immutable(&at, to, &old.completion_mode);
    let (at, to) = (path.field("podFailurePolicy"), &new.pod_failure_policy);
    errors.immutable(&at, to, &old.pod_failure_policy);
    let (at, to) = (
        path.field("backoffLimitPerIndex"),
        &new.backoff_limit_per_index,
    );
    errors.immutable(&at, to, &old.backoff_limit_per_index);
    errors.immutable(&path.field("managedBy"), &new.managed_by, &old.managed_by);
    let (at, to) = (path.field("successPolicy"), &new.success_policy);
    errors.immutable(&at, to, &old.success_policy);
}

/// Validates that completions are changed only together with the parallelism, and only of indexed Jobs.
fn validate_completions(job: &Job, was: &Job, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, old) = (&job.spec.completions, &was.spec.completions);
    if !spec::is_indexed(&job.spec) {
        errors.immutable(path, new, old);
    } else if new != old && new.is_some() && *new != job.spec.parallelism {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.invalid(path, new, detail);
    }
}

/// Validates a change of the template: of a suspended Job without Pods, resources and where its Pods run can be
/// changed.
fn validate_template(job: &Job, was: &Job, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (new, old) = (&job.spec.template, &was.spec.template);
    let at = path.field("template");
    if !is_mutable(was) {
        errors.immutable(&at, new, old);
        return;
    }
    let mut allowed = old.clone();
    allow_scheduling(new, &mut allowed);
    allow_resources(&new.spec, &mut allowed.spec);
    errors.immutable(&at.field("spec"), &new.spec, &allowed.spec);
}

fn is_mutable(job: &Job) -> bool {
    let suspended = job.spec.suspend == Some(true);
    let stopped = condition::is_true(&job.status.conditions, "Suspended");
    suspended && (job.status.start_time.is_none() || stopped) && job.status.active == 0
}

/// Sets the scheduling directives of `allowed` to those of the new template.
fn allow_scheduling(new: &PodTemplateSpec, allowed: &mut PodTemplateSpec) {
    let (new, spec) = (&new.spec, &mut allowed.spec);
    let node_affinity = new.affinity.as_ref();
    let node_affinity = node_affinity.and_then(|affinity| affinity.node_affinity.clone());
    if new.affinity.is_some() || spec.affinity.is_some() {
        spec.affinity.get_or_insert_default().node_affinity = node_affinity;
    }
    if new.affinity.is_none() {
        spec.affinity
            .take_if(|affinity| *affinity == Affinity::default());
    }
    spec.node_selector.clone_from(&new.node_selector);
    spec.tolerations.clone_from(&new.tolerations);
    spec.scheduling_gates.clone_from(&new.scheduling_gates);
}

/// Sets the resources of the containers of `allowed` to those of the new template.
fn allow_resources(new: &PodSpec, allowed: &mut PodSpec) {
    copy_resources(&new.containers, &mut allowed.containers);
    copy_resources(&new.init_containers, &mut allowed.init_containers);
}

fn copy_resources(new: &[Container], allowed: &mut [Container]) {
    if new.len() != allowed.len() {
        return;
    }
    let pairs = new.iter().zip(allowed);
    for (new, allowed) in pairs.filter(|(new, allowed)| new.name == allowed.name) {
        allowed.resources.clone_from(&new.resources);
    }
}
