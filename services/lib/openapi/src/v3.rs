//! The documents of OpenAPI v3: one for each group and version.

use serde_json::{Map, Value, json};
use setpoint_codec::rest::{is_connect, subresource_kind};
use setpoint_codec::{Kind, kinds};

use super::published::Described;
use super::schema::{self, Schemas};
use super::{custom, paths};

/// Returns the document of v3 with the custom kinds of a group and version.
pub(super) fn document_of_custom(kinds: &[Described]) -> Value {
    let (mut paths, mut schemas) = (Map::new(), body_schemas());
    for (kind, definition) in kinds {
        paths::add_kind(&mut paths, kind, definition);
        custom::add_kind(&mut schemas, kind, definition, custom::Form::V3);
        custom::add_references(&mut schemas, kind, definition);
    }
    document(paths, schemas)
}

/// Returns the document of v3 with the kinds of a group and version.
pub(super) fn document_of(group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = body_schemas();
    let kinds = kinds().served();
    kinds
        .filter(|kind| kind.group == group && kind.version == version)
        .for_each(|kind| add_kind(&mut paths, &mut schemas, kind));
    document(paths, schemas)
}

/// Returns the schemas of bodies that every group has.
pub(super) fn body_schemas() -> Schemas {
    let mut schemas = Schemas::new();
    let bodies = ["DeleteOptions", "Status"].into_iter();
    bodies
        .filter_map(|kind| kinds().by_kind("v1", kind))
        .for_each(|kind| schema::add_kind(&mut schemas, kind));
    schemas
}

/// Adds the paths and schemas of a kind.
pub(super) fn add_kind(paths: &mut Map<String, Value>, schemas: &mut Schemas, kind: &'static Kind) {
    let definition = kind.definition();
    paths::add_kind(paths, kind, &definition);
    schema::add_kind(schemas, kind);
    let subresources = definition.subresources.iter();
    for subresource in subresources.filter(|name| !is_connect(name)) {
        schema::add_kind(schemas, subresource_kind(kind, subresource));
    }
}

/// Returns a document.
pub(super) fn document(paths: Map<String, Value>, schemas: Schemas) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Returns the title and version of this API.
pub(super) fn info() -> Value {
    json!({ "title": "Setpoint", "version": env!("CARGO_PKG_VERSION") })
}
