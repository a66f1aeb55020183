//! The fields of custom objects that field selectors may name.

use std::collections::HashSet;

use setpoint_proto::apiextensions::{JsonSchemaProps, SelectableField};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const MOST_FIELDS: usize = 8;
const TYPES: [&str; 3] = ["string", "boolean", "integer"];

/// Validates the paths, which must be of scalars in the schema.
pub(super) fn validate(
    fields: &[SelectableField],
    schema: Option<&JsonSchemaProps>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut unique = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = path.index(index);
        let (at, text) = (at.field("jsonPath"), field.json_path.as_str());
        // A version without a schema is an error of its own.
        let Some(schema) = schema else { return };
        if text.is_empty() {
            errors.required(&at, "");
            continue;
        }
        let found = match resolve(text, schema) {
            Ok(found) => found,
            Err(problem) => {
                errors.invalid(&at, text, format!("is an invalid path: {problem}"));
                continue;
            }
        };
        if text == ".metadata" || text.starts_with(".metadata.") {
            errors.invalid(&at, text, "must not point to fields in metadata");
        }
        if !TYPES.contains(&found.r#type.as_str()) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.invalid(&at, text, detail);
        }
        if !unique.insert(text) {
            errors.duplicate(&at, text);
        }
    }
    errors.at_most(path, unique.len(), MOST_FIELDS);
}

/// Returns the schema of the field at a path such as `.spec.color`.
///
/// # Errors
/// The reason why the schema has no such field.
pub(super) fn resolve<'s>(
    path: &str,
    schema: &'s JsonSchemaProps,
) -> Result<&'s JsonSchemaProps, String> {
    if path.contains(['[', ']']) {
        return Err("array notation is not allowed".into());
    }
    let mut names = path.split('.');
    if let Some(first) = names.next().filter(|first| !first.is_empty()) {
        return Err(format!("expected [ or . but got: {first}"));
    }
    let mut found = schema;
    for name in names {
        let others = found.additional_properties.as_ref();
        let others = others.filter(|_| found.properties.is_empty());
        let other = others.and_then(|others| others.schema.as_deref());
        let next = found.properties.get(name).or(other);
        found = next
            .filter(|_| !name.is_empty())
            .ok_or("does not refer to a valid field")?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_resolved_through_fields_and_maps() {
        let schema = json!({ "properties": {
            "spec": { "properties": { "color": { "type": "string" } } },
            "labels": { "additionalProperties": { "type": "integer" } },
        } });
        let schema: JsonSchemaProps = serde_json::from_value(schema).unwrap();
        let found = |path| resolve(path, &schema).map(|found| found.r#type.as_str());
        assert_eq!(found(".spec.color"), Ok("string"));
        assert_eq!(found(".labels.any"), Ok("integer"));
        for (path, problem) in [
            ("spec.color", "expected [ or . but got: spec"),
            (".spec['color']", "array notation is not allowed"),
            (".spec.shade", "does not refer to a valid field"),
            (".spec.color.red", "does not refer to a valid field"),
            (".spec..color", "does not refer to a valid field"),
            (".", "does not refer to a valid field"),
        ] {
            assert_eq!(found(path), Err(problem.to_owned()), "{path}");
        }
    }
}
