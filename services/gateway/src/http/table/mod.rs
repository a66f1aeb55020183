//! The format `Table`, which kubectl prints.
//!
//! The columns are proto options of the kind. A cell is computed by the kind (`StoredKind::cell`) or else read from the
//! object at the column's path.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_codec::{Column, Kind, Object};

use crate::kinds::{self, age};

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
    let others = kind.columns.iter();
    let others = others.map(|column| {
        let format = if column.name == NAME { "name" } else { "" };
        definition(&column.name, &column.r#type, format, column.priority)
    });
    name.into_iter().chain(others).collect()
}

const NAME: &str = "Name";

fn leads_with_name(kind: &Kind) -> bool {
    kind.columns.iter().all(|column| column.name != NAME)
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

/// Returns the row of an object.
pub(super) fn row(object: &dyn Object, include: Include, now: Timestamp) -> Value {
    let json = json_of(object);
    let strategy = kinds::find(object.kind());
    let name = leads_with_name(object.kind()).then(|| Value::from(object.meta().name.clone()));
    let others = (object.kind().columns.iter()).map(|column| {
        let cell = strategy.and_then(|strategy| strategy.cell(object, &column.name, now));
        cell.unwrap_or_else(|| generic(object, &json, column, now))
    });
    let cells: Value = name.into_iter().chain(others).collect();
    match include {
        Include::Nothing => json!({ "cells": cells }),
        Include::Metadata => json!({ "cells": cells, "object": partial(&json) }),
        Include::Object => json!({ "cells": cells, "object": json }),
    }
}

fn generic(object: &dyn Object, json: &Value, column: &Column, now: Timestamp) -> Value {
    if column.name == "Age" {
        let created = &object.meta().creation_timestamp;
        return age::since_time(Some(created), now).into();
    }
    let path = column.path.as_ref().map(|path| path.replace('.', "/"));
    match path.and_then(|path| json.pointer(&path)) {
        None | Some(Value::Null) => "<none>".into(),
        Some(value) => value.clone(),
    }
}

/// Returns the JSON of an object.
pub(super) fn json_of(object: &dyn Object) -> Value {
    serde_json::from_slice(&object.to_json()).expect("the codec writes JSON")
}

/// Returns the metadata of an object, as JSON.
pub(super) fn partial(json: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": json["metadata"],
    })
}
