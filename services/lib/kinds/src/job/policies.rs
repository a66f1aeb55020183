//! Validation of the policies for failures, success and replacement of the Pods of a Job.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::batch::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicyRule,
};

use super::{indexes, spec};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];
const REPLACEMENTS: &[&str] = &["Failed", "TerminatingOrFailed"];

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;
/// The length of a list of indexes in bytes.
const MAX_INDEXES: usize = 64 * 1024;

/// Validates the policies.
pub fn validate(job: &JobSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(policy) = &job.pod_failure_policy {
        let path = path.field("podFailurePolicy");
        let path = path.field("rules");
        errors.at_most(&path, policy.rules.len(), MAX_RULES);
        for (index, rule) in policy.rules.iter().enumerate() {
            validate_failure(job, rule, &path.index(index), errors);
        }
    }
    validate_success(job, &path.field("successPolicy"), errors);
    let replacement = job.pod_replacement_policy.as_deref();
    let supported = match job.pod_failure_policy {
        Some(_) => &REPLACEMENTS[..1],
        None => REPLACEMENTS,
    };
    errors.one_of(&path.field("podReplacementPolicy"), replacement, supported);
}

fn validate_failure(
    job: &JobSpec,
    rule: &PodFailurePolicyRule,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, action) = (path.field("action"), rule.action.as_str());
    match action {
        "FailIndex" if job.backoff_limit_per_index.is_none() => {
            let detail = "requires the backoffLimitPerIndex to be set";
            errors.invalid(&at, action, detail);
        }
        _ => one_of_required(action, ACTIONS, &at, errors),
    }
    if let Some(codes) = &rule.on_exit_codes {
        validate_exit_codes(job, codes, &path.field("onExitCodes"), errors);
    }
    validate_conditions(rule, &path.field("onPodConditions"), errors);
    match (&rule.on_exit_codes, rule.on_pod_conditions.is_empty()) {
        (Some(_), false) => {
            let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.invalid_without_value(path, detail);
        }
        (None, true) => {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.invalid_without_value(path, detail);
        }
        _ => {}
    }
}

fn one_of_required(
    value: &str,
    supported: &[&str],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if value.is_empty() {
        let quoted: Vec<_> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("valid values: [{}]", quoted.join(" "));
        errors.required(path, &detail);
    }
    errors.one_of_or_empty(path, value, supported);
}

fn validate_conditions(
    rule: &PodFailurePolicyRule,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.at_most(path, rule.on_pod_conditions.len(), MAX_CONDITIONS);
    for (index, pattern) in rule.on_pod_conditions.iter().enumerate() {
        let path = path.index(index);
        let of = pattern.r#type.as_str();
        errors.check(&path.field("type"), of, names::validate_qualified_name);
        one_of_required(&pattern.status, STATUSES, &path.field("status"), errors);
    }
}

fn validate_exit_codes(
    job: &JobSpec,
    codes: &PodFailurePolicyOnExitCodesRequirement,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    one_of_required(&codes.operator, OPERATORS, &path.field("operator"), errors);
    let pod = &job.template.spec;
    let mut containers = pod.containers.iter().chain(&pod.init_containers);
    if let Some(name) = &codes.container_name
        && !containers.any(|container| container.name == *name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&path.field("containerName"), name, detail);
    }
    let (path, values) = (path.field("values"), &codes.values);
    if values.is_empty() {
        errors.invalid(&path, values, "at least one value is required");
    }
    errors.at_most(&path, values.len(), MAX_EXIT_CODES);
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        let path = path.index(index);
        if codes.operator == "In" && *value == 0 {
            errors.invalid(&path, value, "must not be 0 for the In operator");
        }
        if !seen.insert(value) {
            errors.duplicate(&path, value);
        }
    }
    if !values.is_sorted() {
        errors.invalid(&path, values, "must be ordered");
    }
}

fn validate_success(job: &JobSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(policy) = &job.success_policy else {
        return;
    };
    if !spec::is_indexed(job) {
        errors.invalid(path, policy, "requires indexed completion mode");
        return;
    }
    let path = path.field("rules");
    if policy.rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&path, detail);
    }
    errors.at_most(&path, policy.rules.len(), MAX_RULES);
    let completions = job.completions.unwrap_or_default();
    for (index, rule) in policy.rules.iter().enumerate() {
        validate_success_rule(rule, completions, &path.index(index), errors);
    }
}

fn validate_success_rule(
    rule: &SuccessPolicyRule,
    completions: i32,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.required(path, detail);
    }
    let mut total = None;
    if let Some(text) = &rule.succeeded_indexes {
        let path = path.field("succeededIndexes");
        if text.len() > MAX_INDEXES {
            errors.too_long(&path, MAX_INDEXES);
        }
        let count = indexes::count(text, completions);
        if let Err(error) = &count {
            let detail = format!("error parsing succeededIndexes: {error}");
            errors.invalid(&path, text, detail);
        }
        total = Some(count.unwrap_or_default());
    }
    let Some(count) = rule.succeeded_count else {
        return;
    };
    let path = path.field("succeededCount");
    errors.non_negative(&path, count);
    if count > completions {
        let detail = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        errors.invalid(&path, count, detail);
    }
    if let Some(total) = total.filter(|total| count > *total) {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.invalid(&path, count, detail);
    }
}
