//! The versions of a definition.
//!
//! Upstream moves what all versions have in common from the versions to the spec, and so do the paths of its errors: a
//! wrong schema is at `spec.validation` if all versions have it, and at `spec.versions[0].schema` if not.

use std::collections::HashSet;

use setpoint_proto::apiextensions::{
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, JsonSchemaProps,
};

use super::names::validate_label;
use super::{column, schema, selectable_field, subresources};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const LONGEST_WARNING: usize = 256;

/// Validates the versions and what they have in common.
pub(super) fn validate(
    spec: &CustomResourceDefinitionSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("versions");
    let common = Common::of(&spec.versions);
    let mut names = HashSet::new();
    for (index, version) in spec.versions.iter().enumerate() {
        let at = at.index(index);
        validate_label(&version.name, &at.field("name"), errors);
        if schema_of(version).is_none() {
            let schema = at.field("schema");
            errors.required(&schema.field("openAPIV3Schema"), "");
        }
        validate_deprecation(version, &at.field("deprecationWarning"), errors);
        common
            .complement()
            .validate(version, has_status(version), &at, errors);
        names.insert(version.name.as_str());
    }
    if let Some(first) = spec.versions.first() {
        let has_status = spec.versions.iter().any(has_status);
        common.validate(first, has_status, path, errors);
    }
    if names.len() < spec.versions.len() {
        let detail = "must contain unique version names";
        errors.invalid(&at, &spec.versions, detail);
    }
    let stored = spec.versions.iter().filter(|version| version.storage);
    if stored.count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.invalid(&at, &spec.versions, detail);
    }
}

/// Requires that the stored versions are versions of the definition, and that one is that in which objects are stored.
pub(super) fn validate_stored(
    stored: &[String],
    versions: &[CustomResourceDefinitionVersion],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if stored.is_empty() {
        return errors.invalid(path, stored, "must have at least one stored version");
    }
    for version in versions.iter().filter(|version| version.storage) {
        if !stored.contains(&version.name) {
            let detail = format!("must have the storage version {}", version.name);
            errors.invalid(path, stored, detail);
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version.name == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.invalid(&path.index(index), name, detail);
        }
    }
}

/// Returns the name of the version in which objects are stored.
pub(super) fn storage_version(versions: &[CustomResourceDefinitionVersion]) -> Option<&str> {
    let stored = versions.iter().find(|version| version.storage);
    stored.map(|version| version.name.as_str())
}

/// Returns the schema of a version.
pub(super) fn schema_of(version: &CustomResourceDefinitionVersion) -> Option<&JsonSchemaProps> {
    let schema = version.schema.as_ref();
    schema.and_then(|schema| schema.open_api_v3_schema.as_ref())
}

fn has_status(version: &CustomResourceDefinitionVersion) -> bool {
    let parts = version.subresources.as_ref();
    parts.is_some_and(|parts| parts.status.is_some())
}

/// The parts that all versions have in common, or those that they have not.
#[derive(Clone, Copy)]
struct Common {
    are_common: bool,
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable_fields: bool,
}

impl Common {
    fn of(versions: &[CustomResourceDefinitionVersion]) -> Self {
        let all =
            |same: fn(&[CustomResourceDefinitionVersion]) -> bool| versions.windows(2).all(same);
        Self {
            are_common: true,
            schema: all(|two| two[0].schema == two[1].schema),
            subresources: all(|two| two[0].subresources == two[1].subresources),
            columns: all(|two| {
                two[0].additional_printer_columns == two[1].additional_printer_columns
            }),
            selectable_fields: all(|two| {
                two[0].selectable_fields == two[1].selectable_fields
                    && two[0].schema == two[1].schema
            }),
        }
    }

    /// Returns the parts that each version has for itself.
    fn complement(self) -> Self {
        Self {
            are_common: false,
            schema: !self.schema,
            subresources: !self.subresources,
            columns: !self.columns,
            selectable_fields: !self.selectable_fields,
        }
    }

    /// Validates these parts of a version at a path: that of the spec for those in common.
    fn validate(
        self,
        version: &CustomResourceDefinitionVersion,
        has_status: bool,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        let schema = schema_of(version);
        if let Some(schema) = schema.filter(|_| self.schema) {
            let field = if self.are_common {
                "validation"
            } else {
                "schema"
            };
            schema::validate_root(schema, has_status, &path.field(field), errors);
        }
        let parts = version.subresources.as_ref();
        if let Some(parts) = parts.filter(|_| self.subresources) {
            subresources::validate(parts, &path.field("subresources"), errors);
        }
        if self.columns {
            let at = path.field("additionalPrinterColumns");
            for (index, one) in version.additional_printer_columns.iter().enumerate() {
                column::validate(one, &at.index(index), errors);
            }
        }
        if self.selectable_fields {
            let at = path.field("selectableFields");
            selectable_field::validate(&version.selectable_fields, schema, &at, errors);
        }
    }
}

fn validate_deprecation(
    version: &CustomResourceDefinitionVersion,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(warning) = &version.deprecation_warning else {
        return;
    };
    if !version.deprecated {
        return errors.invalid(path, warning, "can only be set for deprecated versions");
    }
    if warning.len() > LONGEST_WARNING {
        errors.invalid(path, warning, "must be <= 256 characters long");
    }
    if warning.is_empty() {
        errors.invalid(path, warning, "must not be an empty string");
    }
    let unprintable = |letter: char| letter.is_control() || letter.is_whitespace() && letter != ' ';
    if let Some(index) = warning.find(unprintable) {
        let detail = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        );
        errors.invalid(path, warning, detail);
    }
}
