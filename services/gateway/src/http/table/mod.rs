//! Tables: what kubectl prints, made here so that kubectl need not know the kinds.
//!
//! The columns of a kind stand in its options. A cell is read from the object at the column's path,
//! unless the kind computes it in a file of its own.

mod age;
mod configmap;
mod deployment;
mod event;
mod node;
mod pod;
mod replicaset;
mod secret;
mod service;
mod serviceaccount;
mod template;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_codec::{Column, Kind, Object};
use setpoint_proto::{apps, core};

/// How much of the object a row carries beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// A kind whose cells are more than a look at a path.
trait Cells {
    /// The cell of the named column; `None` if the column's path says it all.
    fn cell(&self, column: &str, now: Timestamp) -> Option<Value>;
}

/// The object as a kind that computes cells, if it is of that kind.
type CellsOf = fn(&dyn Any) -> Option<&dyn Cells>;

/// The kinds that compute cells. One that is missing here still has its paths, name and age.
const COMPUTED: &[CellsOf] = &[
    cells_of::<core::Pod>,
    cells_of::<core::Node>,
    cells_of::<core::Event>,
    cells_of::<core::Service>,
    cells_of::<core::ConfigMap>,
    cells_of::<core::Secret>,
    cells_of::<core::ServiceAccount>,
    cells_of::<apps::Deployment>,
    cells_of::<apps::ReplicaSet>,
];

fn cells_of<T: Cells + 'static>(object: &dyn Any) -> Option<&dyn Cells> {
    object
        .downcast_ref::<T>()
        .map(|object| object as &dyn Cells)
}

/// The definitions of a kind's columns: the name first, unless the kind has another place for it, as Events do.
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

/// One object as a row.
pub(super) fn row(object: &dyn Object, include: Include, now: Timestamp) -> Value {
    let json = json_of(object);
    let computed = COMPUTED.iter().find_map(|of| of(object.as_any()));
    let name = leads_with_name(object.kind()).then(|| Value::from(object.meta().name.clone()));
    let others = (object.kind().columns.iter()).map(|column| {
        let cell = computed.and_then(|cells| cells.cell(&column.name, now));
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

/// An object's JSON, to be looked into.
pub(super) fn json_of(object: &dyn Object) -> Value {
    serde_json::from_slice(&object.to_json()).expect("the codec writes JSON")
}

/// The metadata of an object whose JSON is given.
pub(super) fn partial(json: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": json["metadata"],
    })
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".into()
    } else {
        text
    }
}

fn labels(labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}
