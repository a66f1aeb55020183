//! Validation, scale and table cells that workloads share: replicas, a selector, and a template that it must match.

use std::collections::BTreeMap;

use serde_json::Value;
use setpoint_codec::Object;
use setpoint_model::selector::Selector;
use setpoint_proto::core::PodTemplateSpec;
use setpoint_proto::meta::LabelSelector;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;
use crate::validation::metadata;
use crate::validation::podspec;
use crate::validation::warnings::Warnings;

/// The items of [`StoredKind`](super::StoredKind) of kinds with the subresource `scale` and a label selector.
macro_rules! scale_items {
    () => {
        fn scale(&self) -> Option<Replicas> {
            let selector = self.spec.selector.as_ref();
            Some(Replicas {
                desired: self.spec.replicas.unwrap_or_default(),
                unknown: None,
                observed: self.status.replicas,
                selector: selector
                    .and_then(|selector| Selector::from_label_selector(selector).ok()),
            })
        }

        super::template::scale_items!(set);
    };
    (set) => {
        fn set_replicas(&mut self, replicas: i32) {
            self.spec.replicas = Some(replicas);
        }
    };
}
pub(super) use scale_items;

/// The items of [`StoredKind`](super::StoredKind) that Deployments and ReplicaSets share.
macro_rules! workload_items {
    () => {
        const ROLE: Role = Role::Workload;

        crate::status::status_items!(counted);

        fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
            let path = FieldPath::root("spec");
            let (new, old) = (&self.spec.selector, &old.spec.selector);
            errors.immutable(&path.field("selector"), new, old);
        }

        fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
            if old.is_none() {
                warn_of_pod_names(&self.metadata.name, warnings);
            }
            super::template::warn_of_change(self, old, &self.spec.template, warnings);
        }

        super::template::scale_items!();
    };
}
pub(super) use workload_items;

/// Warns of the template at `spec.template` of a new object, or of one whose intent an update changes.
pub(super) fn warn_of_change(
    new: &impl Object,
    old: Option<&impl Object>,
    template: &PodTemplateSpec,
    warnings: &mut Warnings,
) {
    if is_new_intent(new, old) {
        let path = FieldPath::root("spec");
        podspec::warn_of_template(template, &path.field("template"), warnings);
    }
}

/// Returns whether an object is new, or its generation differs from that of `old`.
pub(super) fn is_new_intent(new: &impl Object, old: Option<&impl Object>) -> bool {
    old.is_none_or(|old| old.meta().generation != new.meta().generation)
}

/// Validates the selector, the template, and that they match.
pub(super) fn validate(
    selector: Option<&LabelSelector>,
    template: &PodTemplateSpec,
    errors: &mut FieldErrors,
) {
    let spec = FieldPath::root("spec");
    let (at, path) = (spec.field("selector"), spec.field("template"));
    let before = errors.count();
    match selector {
        None => errors.required(&at, ""),
        Some(selector) => label_selector::validate(Some(selector), &at, errors),
    }
    let malformed = selector.is_some() && errors.count() > before;
    if selector.is_some_and(label_selector::is_empty) {
        // Kubernetes has the same message for ReplicaSets.
        errors.invalid(&at, selector, "empty selector is invalid for deployment");
    }
    match selector.map(Selector::from_label_selector).transpose() {
        Ok(parsed) if !malformed => {
            validate_labels(parsed.as_ref(), template, &path, errors);
            validate_running(template, "ReplicaSet", &path, errors);
        }
        _ => errors.invalid(&at, selector, "invalid label selector"),
    }
}

/// Validates that the selector matches the labels of the template. A missing selector matches none.
pub(super) fn validate_labels(
    selector: Option<&Selector>,
    template: &PodTemplateSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let labels = &template.metadata.labels;
    if !selector.is_some_and(|selector| selector.matches(labels)) {
        let detail = "`selector` does not match template `labels`";
        let at = path.field("metadata");
        errors.invalid(&at.field("labels"), labels, detail);
    }
}

/// Validates that counts of Pods in a status are neither negative nor greater than `replicas`.
pub(super) fn validate_counts(
    replicas: i32,
    counts: &[(&'static str, i32)],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.non_negative(&path.field("replicas"), replicas);
    for (field, count) in counts {
        let at = path.field(field);
        errors.non_negative(&at, *count);
        if *count > replicas {
            errors.invalid(&at, count, "cannot be greater than status.replicas");
        }
    }
}

/// Validates that the count of collisions is neither negative nor less than that of `old`.
pub(super) fn validate_collisions(
    new: Option<i32>,
    old: Option<i32>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("collisionCount");
    let count = new.unwrap_or_default();
    errors.non_negative(&at, count);
    if old > new {
        errors.invalid(&at, count, "cannot be decremented");
    }
}

/// Validates that at most the ready Pods are available.
pub(super) fn validate_available(
    available: i32,
    ready: i32,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if available > ready {
        let detail = "cannot be greater than readyReplicas";
        errors.invalid(&path.field("availableReplicas"), available, detail);
    }
}

/// Validates a template of Pods that run until they are deleted.
pub(super) fn validate_running(
    template: &PodTemplateSpec,
    kind: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_template(template, path, errors);
    validate_endless(template, kind, path, errors);
}

/// Validates that the Pods of a template of this kind run until they are deleted.
pub(super) fn validate_endless(
    template: &PodTemplateSpec,
    kind: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.field("spec");
    let policy = template.spec.restart_policy.as_str();
    errors.one_of_or_empty(&path.field("restartPolicy"), policy, &["Always"]);
    if template.spec.active_deadline_seconds.is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&path.field("activeDeadlineSeconds"), detail);
    }
}

/// Validates the labels and annotations of a template of Pods.
pub(super) fn validate_metadata(
    template: &PodTemplateSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    // Kubernetes leaves `metadata` out of the paths of these two fields.
    let (meta, annotations) = (&template.metadata, path.field("annotations"));
    metadata::validate_labels(&meta.labels, &path.field("labels"), errors);
    metadata::validate_annotations(&meta.annotations, &annotations, errors);
    podspec::validate_annotations(&meta.annotations, &template.spec, &annotations, errors);
}

/// Validates a template of Pods.
pub(super) fn validate_template(
    template: &PodTemplateSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_metadata(template, path, errors);
    let (meta, path) = (&template.metadata, path.field("spec"));
    podspec::validate(&template.spec, &path, errors);
    podspec::validate_profiles(&meta.annotations, &template.spec, &path, errors);
    if !template.spec.ephemeral_containers.is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.forbidden(&path.field("ephemeralContainers"), detail);
    }
}

/// Returns the cell of a column about the template or the selector.
pub(super) fn cell(
    column: &str,
    template: &PodTemplateSpec,
    selector: Option<&LabelSelector>,
) -> Option<Value> {
    let containers = template.spec.containers.iter();
    Some(match column {
        "Containers" => join(containers.map(|container| container.name.as_str())),
        "Images" => join(containers.map(|container| container.image.as_str())),
        "Selector" => self::selector(selector),
        _ => return None,
    })
}

/// Returns labels as a cell.
pub(super) fn labels(labels: &BTreeMap<String, String>) -> Value {
    match labels.is_empty() {
        true => "<none>".into(),
        false => {
            let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
            pairs.collect::<Vec<_>>().join(",").into()
        }
    }
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> Value {
    words.collect::<Vec<_>>().join(",").into()
}

/// Returns a label selector as a cell.
pub(super) fn selector(selector: Option<&LabelSelector>) -> Value {
    match selector.map(Selector::from_label_selector) {
        None => "<none>".into(),
        Some(Ok(selector)) if selector.is_empty() => "<none>".into(),
        Some(Ok(selector)) => selector.to_string().into(),
        Some(Err(_)) => "<error>".into(),
    }
}
