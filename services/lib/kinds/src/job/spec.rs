//! Defaults and validation of the spec of a Job, which may be in a CronJob.

use setpoint_model::selector::Selector;
use setpoint_proto::batch::JobSpec;

use super::{INDEXED, NEVER, policies};
use crate::template;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;
use crate::validation::{label_selector, podspec};

const MODES: &[&str] = &["NonIndexed", INDEXED];

/// The largest parallelism and number of failed indexes of an indexed Job, so that lists of indexes stay short.
const MAX_INDEXED: i32 = 100_000;
/// The same limits for more completions than `MAX_INDEXED`.
const MAX_OF_MANY: i32 = 10_000;
/// The length of `managedBy` in bytes.
const MAX_MANAGER: usize = 63;

pub fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some(INDEXED)
}

/// Sets the defaults that a Job in a CronJob has, too.
pub fn fill_defaults(spec: &mut JobSpec) {
    podspec::fill_defaults(&mut spec.template.spec);
    let rules = spec.pod_failure_policy.iter_mut();
    let rules = rules.flat_map(|policy| &mut policy.rules);
    for pattern in rules.flat_map(|rule| &mut rule.on_pod_conditions) {
        crate::validation::set_default(&mut pattern.status, "True");
    }
}

/// Warns of the template, and of numbers that the status may be too small for.
pub fn warn(spec: &JobSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let count = |number: Option<i32>| number.unwrap_or_default();
    if is_indexed(spec)
        && count(spec.completions) > MAX_INDEXED
        && count(spec.parallelism) > MAX_OF_MANY
    {
        let text = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        warnings.about(path, text);
    }
    podspec::warn_of_template(&spec.template, &path.field("template"), warnings);
}

/// Sets the defaults of a Job itself.
pub fn fill_job_defaults(spec: &mut JobSpec) {
    if spec.parallelism.is_none() {
        spec.completions.get_or_insert(1);
        spec.parallelism = Some(1);
    }
    let backoff = match spec.backoff_limit_per_index {
        Some(_) => i32::MAX,
        None => 6,
    };
    spec.backoff_limit.get_or_insert(backoff);
    let mode = &mut spec.completion_mode;
    mode.get_or_insert_with(|| MODES[0].into());
    spec.suspend.get_or_insert(false);
    let replacement = match spec.pod_failure_policy {
        Some(_) => "Failed",
        None => "TerminatingOrFailed",
    };
    let policy = &mut spec.pod_replacement_policy;
    policy.get_or_insert_with(|| replacement.into());
    spec.manual_selector.get_or_insert(false);
}

/// Validates the spec of a Job with its selector.
pub fn validate_with_selector(spec: &JobSpec, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    validate(spec, &path, errors);
    let (selector, at) = (spec.selector.as_ref(), path.field("selector"));
    if selector.is_none() {
        errors.required(&at, "");
    }
    let before = errors.count();
    label_selector::validate(selector, &at, errors);
    if errors.count() == before
        && let Ok(parsed) = selector.map(Selector::from_label_selector).transpose()
    {
        let path = path.field("template");
        template::validate_labels(parsed.as_ref(), &spec.template, &path, errors);
    }
}

/// Validates the spec of a Job without its selector.
pub fn validate(spec: &JobSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_numbers(spec, path, errors);
    if let Some(manager) = &spec.managed_by {
        validate_manager(manager, &path.field("managedBy"), errors);
    }
    let mode = spec.completion_mode.as_deref();
    errors.one_of(&path.field("completionMode"), mode, MODES);
    if is_indexed(spec) {
        validate_indexed(spec, path, errors);
    } else if mode.is_none_or(|mode| mode == MODES[0]) {
        for (field, value) in [
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ] {
            if let Some(value) = value {
                let detail = "requires indexed completion mode";
                errors.invalid(&path.field(field), value, detail);
            }
        }
    }
    policies::validate(spec, path, errors);
    let template = path.field("template");
    template::validate_template(&spec.template, &template, errors);
    validate_restart_policy(spec, &template, errors);
}

fn validate_numbers(spec: &JobSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let numbers = [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        (
            "ttlSecondsAfterFinished",
            spec.ttl_seconds_after_finished.map(i64::from),
        ),
        (
            "backoffLimitPerIndex",
            spec.backoff_limit_per_index.map(i64::from),
        ),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ];
    for (field, number) in numbers {
        errors.non_negative(&path.field(field), number.unwrap_or_default());
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        let at = path.field("backoffLimitPerIndex");
        errors.required(&at, "when maxFailedIndexes is specified");
    }
}

/// Validates a path with a domain, such as `acme.io/foo`.
fn validate_manager(manager: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.domain_prefixed_path(path, manager);
    if manager.len() > MAX_MANAGER {
        errors.too_long(path, MAX_MANAGER);
    }
}

fn validate_indexed(spec: &JobSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (parallel, failed) = (path.field("parallelism"), path.field("maxFailedIndexes"));
    if spec.completions.is_none() {
        let detail = "when completion mode is Indexed";
        errors.required(&path.field("completions"), detail);
    }
    let above = |value: Option<i32>, limit| value.filter(|value| *value > limit);
    if let Some(value) = above(spec.parallelism, MAX_INDEXED) {
        let detail = format!(
            "must be less than or equal to {MAX_INDEXED} when completion mode is {INDEXED}"
        );
        errors.invalid(&parallel, value, detail);
    }
    if let Some(completions) = spec.completions
        && let Some(value) = above(spec.max_failed_indexes, completions)
    {
        errors.invalid(&failed, value, "must be less than or equal to completions");
    }
    if let Some(value) = above(spec.max_failed_indexes, MAX_INDEXED) {
        let detail = format!("must be less than or equal to {MAX_INDEXED}");
        errors.invalid(&failed, value, detail);
    }
    if above(spec.completions, MAX_INDEXED).is_none() || spec.backoff_limit_per_index.is_none() {
        return;
    }
    if spec.max_failed_indexes.is_none() {
        let detail = format!("must be specified when completions is above {MAX_INDEXED}");
        errors.required(&failed, &detail);
    }
    for (path, value) in [
        (parallel, spec.parallelism),
        (failed, spec.max_failed_indexes),
    ] {
        if let Some(value) = above(value, MAX_OF_MANY) {
            let detail = format!(
                "must be less than or equal to {MAX_OF_MANY} when completions are above {MAX_INDEXED} and used with backoff limit per index"
            );
            errors.invalid(&path, value, detail);
        }
    }
}

fn validate_restart_policy(spec: &JobSpec, template: &FieldPath<'_>, errors: &mut FieldErrors) {
    let path = template.field("spec");
    let path = path.field("restartPolicy");
    match spec.template.spec.restart_policy.as_str() {
        "" | "Always" => errors.required(&path, r#"valid values: "OnFailure", "Never""#),
        NEVER => {}
        "OnFailure" if spec.pod_failure_policy.is_none() => {}
        policy @ "OnFailure" => {
            let detail = r#"only "Never" is supported when podFailurePolicy is specified"#;
            errors.invalid(&path, policy, detail);
        }
        other => errors.unsupported(&path, other, &["Never", "OnFailure"]),
    }
}
