//! The format `Table`, which kubectl prints.
//!
//! The columns are proto options of the kind. A cell is computed by the kind (`StoredKind::cell`) or else read from the
//! object at the column's path.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_codec::{Column, Kind, Object};
use setpoint_proto::meta::{ListMeta, ObjectMeta};

use crate::kinds::{self, age, view};

/// The part of the object in a row beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Returns the definitions of a kind's columns: the name first, unless the options have another place for it.
pub(super) fn columns(kind: &Kind) -> Value {
    let name = leads_with_name(kind).then(|| definition(NAME, "string", "name", 0));
    let others = kind.stored().columns.iter();
    let others = others.map(|column| {
        let format = if column.name == NAME { "name" } else { "" };
        definition(&column.name, &column.r#type, format, column.priority)
    });
    name.into_iter().chain(others).collect()
}

const NAME: &str = "Name";

fn leads_with_name(kind: &Kind) -> bool {
    let columns = &kind.stored().columns;
    columns.iter().all(|column| column.name != NAME)
}

fn definition(name: &str, of: &str, format: &str, priority: i32) -> Value {
    json!({
        "name": name,
        "type": of,
        "format": format,
        "description": "",
        "priority": priority,
    })
}

/// Returns whether objects of a kind can be shown in a Table.
pub(super) fn has_table(kind: &Kind) -> bool {
    kind.stored().is_stored() || !kind.columns.is_empty()
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
    let mut row = match object.kind().is_stored() {
        true => row_of_stored(object, &json, now),
        // The columns are those of the stored kind, so the cells are made from the stored form.
        false => {
            let stored = view::to_stored(object.clone_box());
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
    let name = leads_with_name(object.kind()).then(|| Value::from(object.meta().name.clone()));
    let others = (object.kind().columns.iter()).map(|column| {
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
