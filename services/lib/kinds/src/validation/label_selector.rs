//! Validation of label selectors.

use setpoint_model::names;
use setpoint_proto::meta::{LabelSelector, LabelSelectorRequirement};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::metadata;

/// Returns whether the selector has no requirements, so that it selects everything.
pub fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.is_empty() && selector.match_expressions.is_empty()
}

/// Validates a label selector, if it is set.
pub fn validate(selector: Option<&LabelSelector>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(selector) = selector else {
        return;
    };
    metadata::validate_labels(&selector.match_labels, &path.field("matchLabels"), errors);
    let expressions = path.field("matchExpressions");
    for (index, requirement) in selector.match_expressions.iter().enumerate() {
        validate_requirement(requirement, &expressions.index(index), errors);
    }
}

fn validate_requirement(
    requirement: &LabelSelectorRequirement,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (values, at) = (&requirement.values, path.field("values"));
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(&at, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&at, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.invalid(
            &path.field("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    let key = requirement.key.as_str();
    errors.check(&path.field("key"), key, names::validate_label_key);
    validate_values(values, &at, errors);
}

/// Validates the values of a requirement as label values.
pub fn validate_values(values: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, value) in values.iter().enumerate() {
        errors.check(&path.index(index), value, names::validate_label_value);
    }
}
