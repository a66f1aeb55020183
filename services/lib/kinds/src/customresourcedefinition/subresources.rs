//! The subresources of custom objects.

use setpoint_proto::apiextensions::CustomResourceSubresources;

use super::column::validate_path;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// Validates the paths of the subresource `scale`.
pub(super) fn validate(
    parts: &CustomResourceSubresources,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(scale) = &parts.scale else {
        return;
    };
    for (field, text, within, detail) in [
        (
            "scale.specReplicasPath",
            &scale.spec_replicas_path,
            ".spec.",
            "should be a json path under .spec",
        ),
        (
            "scale.statusReplicasPath",
            &scale.status_replicas_path,
            ".status.",
            "should be a json path under .status",
        ),
    ] {
        let at = path.field(field);
        if text.is_empty() {
            errors.required(&at, "");
        } else if validate_path(text, &at, errors) && !text.starts_with(within) {
            errors.invalid(&at, text, detail);
        }
    }
    let at = path.field("scale.labelSelectorPath");
    let selector = scale.label_selector_path.as_deref().unwrap_or_default();
    let within = [".spec.", ".status."];
    if !selector.is_empty()
        && validate_path(selector, &at, errors)
        && !within.iter().any(|part| selector.starts_with(part))
    {
        let detail = "should be a json path under either .spec or .status";
        errors.invalid(&at, selector, detail);
    }
}
