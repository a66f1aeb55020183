//! The names of a definition.

use setpoint_proto::apiextensions::CustomResourceDefinitionNames;

use crate::admission::validate_dns_1035_label;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// Sets the names that have defaults: all but plural and kind.
pub(super) fn fill_defaults(names: &mut CustomResourceDefinitionNames) {
    if names.singular.is_empty() {
        names.singular = names.kind.to_lowercase();
    }
    if names.list_kind.is_empty() && !names.kind.is_empty() {
        names.list_kind = format!("{}List", names.kind);
    }
}

/// Validates the names of the spec, of which some must be set.
pub(super) fn validate_requested(
    names: &CustomResourceDefinitionNames,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.not_empty(&path.field("plural"), &names.plural);
    errors.not_empty(&path.field("singular"), &names.singular);
    errors.not_empty(&path.field("kind"), &names.kind);
    errors.not_empty(&path.field("listKind"), &names.list_kind);
    validate(names, path, errors);
}

/// Validates names of which any may be empty.
pub(super) fn validate(
    names: &CustomResourceDefinitionNames,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_resource(&names.plural, &path.field("plural"), errors);
    validate_resource(&names.singular, &path.field("singular"), errors);
    validate_kind(&names.kind, &path.field("kind"), errors);
    validate_kind(&names.list_kind, &path.field("listKind"), errors);
    validate_labels(&names.short_names, &path.field("shortNames"), errors);
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.invalid(&path.field("listKind"), &names.list_kind, detail);
    }
    validate_labels(&names.categories, &path.field("categories"), errors);
}

fn validate_resource(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !name.is_empty() {
        validate_label(name, path, errors);
    }
}

fn validate_kind(kind: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let problems = validate_dns_1035_label(&kind.to_lowercase());
    if !kind.is_empty() && !problems.is_empty() {
        let problems = problems.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {problems}");
        errors.invalid(path, kind, detail);
    }
}

fn validate_labels(names: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, name) in names.iter().enumerate() {
        validate_label(name, &path.index(index), errors);
    }
}

/// Adds one error with all problems of a name.
pub(super) fn validate_label(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let problems = validate_dns_1035_label(name);
    if !problems.is_empty() {
        errors.invalid(path, name, problems.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_the_kind() {
        let mut names = CustomResourceDefinitionNames {
            kind: "CronTab".into(),
            ..Default::default()
        };
        fill_defaults(&mut names);
        assert_eq!(
            (&*names.singular, &*names.list_kind),
            ("crontab", "CronTabList")
        );
        let mut given = CustomResourceDefinitionNames {
            singular: "tab".into(),
            list_kind: "Tabs".into(),
            ..names
        };
        fill_defaults(&mut given);
        assert_eq!((&*given.singular, &*given.list_kind), ("tab", "Tabs"));
        let mut none = CustomResourceDefinitionNames::default();
        fill_defaults(&mut none);
        assert_eq!(none, CustomResourceDefinitionNames::default());
    }
}
