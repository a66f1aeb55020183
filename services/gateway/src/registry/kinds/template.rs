//! What Deployments and ReplicaSets have in common: replicas, a selector and a template that must fit it.

use setpoint_model::selector::Selector;
use setpoint_proto::core::PodTemplateSpec;
use setpoint_proto::meta::LabelSelector;

use crate::registry::metadata;
use crate::registry::path::Path;
use crate::registry::podspec;
use crate::registry::problems::Problems;

/// Is something wrong with the selector, the template, or the two of them together? `what` is the kind, in lower case.
pub(super) fn validate(
    selector: Option<&LabelSelector>,
    template: &PodTemplateSpec,
    what: &str,
    problems: &mut Problems,
) {
    let spec = Path::root("spec");
    let path = spec.field("template");
    validate_template(template, &path, problems);
    let Some(wanted) = selector else {
        problems.required(&spec.field("selector"), "");
        return;
    };
    let at = spec.field("selector");
    if wanted.match_labels.is_empty() && wanted.match_expressions.is_empty() {
        problems.invalid(&at, wanted, format!("empty selector is invalid for {what}"));
        return;
    }
    match Selector::from_label_selector(wanted) {
        Err(error) => problems.invalid(&at, wanted, error),
        Ok(selector) if !selector.matches(&template.metadata.labels) => {
            let labels = path.field("metadata");
            let detail = "`selector` does not match template `labels`";
            problems.invalid(&labels.field("labels"), &template.metadata.labels, detail);
        }
        Ok(_) => {}
    }
}

/// Finds numbers of Pods in a status that are negative, or more than all of them.
pub(super) fn validate_counts(
    replicas: i32,
    counts: &[(&'static str, i32)],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    problems.non_negative(&path.field("replicas"), replicas);
    for (field, count) in counts {
        let at = path.field(field);
        problems.non_negative(&at, *count);
        if *count > replicas {
            problems.invalid(&at, count, "cannot be greater than status.replicas");
        }
    }
}

/// Only what is ready can be available.
pub(super) fn validate_available(
    available: i32,
    ready: i32,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if available > ready {
        let detail = "cannot be greater than readyReplicas";
        problems.invalid(&path.field("availableReplicas"), available, detail);
    }
}

fn validate_template(template: &PodTemplateSpec, path: &Path<'_>, problems: &mut Problems) {
    let meta = path.field("metadata");
    metadata::validate_labels(&template.metadata.labels, &meta.field("labels"), problems);
    metadata::validate_annotations(
        &template.metadata.annotations,
        &meta.field("annotations"),
        problems,
    );
    let spec = path.field("spec");
    podspec::validate(&template.spec, &spec, problems);
    let policy = template.spec.restart_policy.as_str();
    problems.one_of(&spec.field("restartPolicy"), policy, &["Always"]);
    if template.spec.active_deadline_seconds.is_some() {
        let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
        problems.forbidden(&spec.field("activeDeadlineSeconds"), detail);
    }
}
