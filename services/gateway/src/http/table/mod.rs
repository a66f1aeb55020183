//! The format `Table`, which kubectl prints.
//!
//! The columns are proto options of the kind. A cell is computed by the kind (`StoredKind::cell`) or else read from the
//! object at the column's path.

use setpoint_kinds::{self as kinds, age, versions};

mod custom;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_codec::{Column, Definition, Kind, Object};
use setpoint_openapi::comments;
use setpoint_proto::meta::{ListMeta, ObjectMeta};

/// The part of the object in a row beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Returns the definition with the columns of a kind: those of the stored kind for another version of a message, and
/// those of the version itself for a custom kind.
fn declared(kind: &Kind) -> Arc<Definition> {
    match kind.is_custom() {
        true => kind.definition(),
        false => kind.stored().definition(),
    }
}

/// Returns the definitions of a kind's columns: the name first, unless the options have another place for it.
pub(super) fn columns(kind: &Kind) -> Value {
    let declared = declared(kind);
    let name = leads_with_name(&declared).then(|| {
        let text = metadata_description(kind, "name");
        definition(NAME, "string", "name", text, 0)
    });
    let others = declared.columns.iter().map(|column| {
        let format = match column.name == NAME && !kind.is_custom() {
            true => "name",
            false => &column.format,
        };
        let text = description(kind, column);
        definition(&column.name, &column.r#type, format, text, column.priority)
    });
    name.into_iter().chain(others).collect()
}

/// Returns the description of a column; by default that of the metadata in it.
fn description<'c>(kind: &Kind, column: &'c Column) -> &'c str {
    match (column.description.as_str(), column.name.as_str()) {
        ("", NAME) => metadata_description(kind, "name"),
        ("", "Age" | "Created At") => metadata_description(kind, "creationTimestamp"),
        (text, _) => text,
    }
}

/// Returns the documentation of a field of the metadata of objects.
fn metadata_description(kind: &Kind, field: &str) -> &'static str {
    let pool = kind.message.parent_pool();
    let message = pool.get_message_by_name("k8s.meta.v1.ObjectMeta");
    let field = message.and_then(|message| message.get_field_by_json_name(field));
    let text = field.and_then(|field| comments::of_field(&field));
    text.unwrap_or_default()
}

const NAME: &str = "Name";

fn leads_with_name(declared: &Definition) -> bool {
    declared.custom.is_some() || declared.columns.iter().all(|column| column.name != NAME)
}

fn definition(name: &str, of: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({
        "name": name,
        "type": of,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

/// Returns whether objects of a kind can be shown in a Table.
pub(super) fn has_table(kind: &Kind) -> bool {
    kind.stored().is_stored() || !kind.definition().columns.is_empty()
}

/// Returns a Table.
pub(super) fn table(version: &str, list: &ListMeta, columns: Value, rows: Vec<Value>) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": list,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// Returns the row of an object. Metadata in it has this version.
pub(super) fn row(object: &dyn Object, include: Include, version: &str, now: Timestamp) -> Value {
    let json = json_of(object);
    let mut row = match object.kind().is_stored() || object.kind().is_custom() {
        true => row_of_stored(object, &json, now),
        // The columns are those of the stored kind, so the cells are made from the stored form.
        false => {
            let stored = versions::to_stored(object.clone_box());
            row_of_stored(&*stored, &json_of(&*stored), now)
        }
    };
    // Without it, a client would not find the end of the initial events.
    let marked = object.meta().annotations.contains_key(INITIAL_EVENTS_END);
    row["object"] = match include {
        Include::Object => json,
        Include::Nothing if !marked => Value::Null,
        _ => partial(object.meta(), version),
    };
    row
}

/// The annotation of the bookmark at the end of the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// Returns the cells of the row, and its condition if the object has come to an end.
fn row_of_stored(object: &dyn Object, json: &Value, now: Timestamp) -> Value {
    let strategy = kinds::find(object.kind());
    let declared = declared(object.kind());
    let name = leads_with_name(&declared).then(|| Value::from(object.meta().name.clone()));
    let others = declared.columns.iter().map(|column| {
        if declared.custom.is_some() {
            return custom::cell(json, column, now);
        }
        let cell = strategy.and_then(|strategy| strategy.cell(object, &column.name, now));
        cell.unwrap_or_else(|| generic(object, json, column, now))
    });
    let cells: Value = name.into_iter().chain(others).collect();
    let mut row = json!({ "cells": cells });
    let completion = strategy.and_then(|strategy| strategy.completion(object));
    if let Some((reason, message)) = completion {
        row["conditions"] = json!([{
            "type": "Completed",
            "status": "True",
            "reason": reason,
            "message": message,
        }]);
    }
    row
}

fn generic(object: &dyn Object, json: &Value, column: &Column, now: Timestamp) -> Value {
    if column.name == "Age" {
        let created = &object.meta().creation_timestamp;
        return age::since_time(Some(created), now).into();
    }
    let path = column.path.as_ref().map(|path| path.replace('.', "/"));
    match path.and_then(|path| json.pointer(&path)) {
        None if column.r#type == "integer" => 0.into(),
        None | Some(Value::Null) => "<none>".into(),
        Some(value) => value.clone(),
    }
}

/// Returns the JSON of an object.
pub(super) fn json_of(object: &dyn Object) -> Value {
    serde_json::from_slice(&object.to_json()).expect("the codec writes JSON")
}

/// The kind of the metadata of an object.
pub(super) const PARTIAL: &str = "PartialObjectMetadata";
/// The kind of the metadata of a list's objects.
pub(super) const PARTIAL_LIST: &str = "PartialObjectMetadataList";

/// Returns the metadata of an object as a `PartialObjectMetadata` of this version.
pub(super) fn partial(metadata: &ObjectMeta, version: &str) -> Value {
    json!({
        "kind": PARTIAL,
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
    })
}
