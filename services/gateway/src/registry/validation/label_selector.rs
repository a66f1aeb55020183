//! Selectors of labels in fields.

use setpoint_model::names;
use setpoint_proto::meta::{LabelSelector, LabelSelectorRequirement};

use crate::registry::validation::field_errors::Problems;
use crate::registry::validation::field_path::Path;
use crate::registry::validation::metadata;

/// Finds what is wrong with a selector, if there is one.
pub fn validate(selector: Option<&LabelSelector>, path: &Path<'_>, problems: &mut Problems) {
    let Some(selector) = selector else {
        return;
    };
    metadata::validate_labels(&selector.match_labels, &path.field("matchLabels"), problems);
    let expressions = path.field("matchExpressions");
    for (index, requirement) in selector.match_expressions.iter().enumerate() {
        validate_requirement(requirement, &expressions.index(index), problems);
    }
}

fn validate_requirement(
    requirement: &LabelSelectorRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let (values, at) = (&requirement.values, path.field("values"));
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            problems.required(&at, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&at, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => problems.invalid(
            &path.field("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    let key = requirement.key.as_str();
    problems.all_invalid(&path.field("key"), key, names::validate_label_key(key));
    validate_values(values, &at, problems);
}

/// Finds values that no label can have.
pub fn validate_values(values: &[String], path: &Path<'_>, problems: &mut Problems) {
    for (index, value) in values.iter().enumerate() {
        let wrong = names::validate_label_value(value);
        problems.all_invalid(&path.index(index), value, wrong);
    }
}
