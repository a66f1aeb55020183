//! Warnings about formats in schemas that are not known, and so are ignored.

use std::collections::BTreeSet;

use setpoint_cel::strfmt;
use setpoint_proto::apiextensions::{CustomResourceDefinition, JsonSchemaProps};

use super::versions;
use crate::validation::warnings::Warnings;

/// Warns of formats that are not known, and that `old` has not.
pub(super) fn warn(
    new: &CustomResourceDefinition,
    old: Option<&CustomResourceDefinition>,
    warnings: &mut Warnings,
) {
    let before: BTreeSet<_> = old.into_iter().flat_map(unknown).collect();
    for format in unknown(new)
        .into_iter()
        .filter(|format| !before.contains(format))
    {
        warnings.add(format!("unrecognized format {format:?}"));
    }
}

fn unknown(definition: &CustomResourceDefinition) -> Vec<&str> {
    let mut found = Vec::new();
    let schemas = definition.spec.versions.iter();
    for schema in schemas.filter_map(versions::schema_of) {
        collect(schema, &mut found);
    }
    found
}

/// Adds the unknown formats of a schema and of those within it, whose depth has been validated.
fn collect<'s>(schema: &'s JsonSchemaProps, found: &mut Vec<&'s str>) {
    let format = schema.format.as_str();
    if !format.is_empty() && !is_known(format, &schema.r#type) {
        found.push(format);
    }
    let items = schema.items.iter();
    let items = items.flat_map(|items| items.schema.as_deref().into_iter().chain(&items.schemas));
    let parts = [&schema.all_of, &schema.any_of, &schema.one_of];
    let maps = [
        &schema.properties,
        &schema.pattern_properties,
        &schema.definitions,
    ];
    let others = [&schema.additional_properties, &schema.additional_items];
    let others = others.into_iter().flatten();
    let dependencies = schema.dependencies.values();
    items
        .chain(parts.into_iter().flatten())
        .chain(schema.not.as_deref())
        .chain(maps.into_iter().flat_map(|map| map.values()))
        .chain(others.filter_map(|other| other.schema.as_deref()))
        .chain(dependencies.filter_map(|one| one.schema.as_ref()))
        .for_each(|schema| collect(schema, found));
}

fn is_known(format: &str, r#type: &str) -> bool {
    match r#type {
        "" | "string" => strfmt::is_known(format),
        "integer" => ["int32", "int64"].contains(&format),
        "number" => ["float", "double"].contains(&format),
        _ => false,
    }
}
