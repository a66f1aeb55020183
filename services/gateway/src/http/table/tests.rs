//! The tables of all kinds as text, as `kubectl get --output wide` prints them, and the parts of a row.

use std::collections::BTreeMap;

use expect_test::expect_file;
use serde_json::{Value, json};
use setpoint_codec::kinds;

use super::*;

const NOW: &str = "2026-01-01T01:00:00Z";

/// The name of an example that has none.
const EXAMPLE: &str = "example";

/// The rows of a kind's table.
struct Rows {
    kind: &'static Kind,
    cells: Vec<Vec<String>>,
}

/// Returns the rows of the example of each kind, and of the objects in `objects.yaml`, by resource.
fn tables() -> BTreeMap<String, Rows> {
    let mut tables = BTreeMap::new();
    for kind in kinds().iter() {
        let cells = vec![cells_of(kind, example(kind))];
        tables.insert(kind.resource(), Rows { kind, cells });
    }
    let objects: Vec<Value> = serde_saphyr::from_str(include_str!("tests/objects.yaml")).unwrap();
    for object in objects {
        let version = object["apiVersion"].as_str().unwrap_or("v1");
        let kind = kinds().by_kind(version, object["kind"].as_str().unwrap());
        let rows = tables.get_mut(&kind.unwrap().resource()).unwrap();
        rows.cells.push(cells_of(rows.kind, object));
    }
    tables
}

/// Returns the example of a kind, created five minutes ago.
fn example(kind: &Kind) -> Value {
    let mut object: Value = match kind.example.as_str() {
        "" => json!({}),
        example => serde_json::from_str(example).unwrap(),
    };
    let metadata = &mut object["metadata"];
    if metadata["name"].is_null() {
        metadata["name"] = EXAMPLE.into();
    }
    metadata["creationTimestamp"] = "2026-01-01T00:55:00Z".into();
    object
}

fn cells_of(kind: &'static Kind, object: Value) -> Vec<String> {
    let mut object = kind.from_json(object.to_string().as_bytes()).unwrap();
    setpoint_kinds::of(kind).fill_defaults(&mut *object);
    let row = row(&*object, Include::Nothing, "v1", NOW.parse().unwrap());
    let cells = row["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| {
            cell.as_str()
                .map_or_else(|| cell.to_string(), str::to_owned)
        })
        .collect()
}

/// Returns the names of columns: those of wide tables in lower case, the others in upper case.
fn header(kind: &Kind) -> Vec<String> {
    let columns = columns(kind);
    let names = columns.as_array().unwrap().iter().map(|column| {
        let name = column["name"].as_str().unwrap();
        match column["priority"] == 0 {
            true => name.to_uppercase(),
            false => name.to_lowercase(),
        }
    });
    names.collect()
}

/// Returns lines in columns of equal width.
fn aligned(lines: &[Vec<String>]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<_> = (0..lines[0].len()).filter_map(width).collect();
    let padded = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("   ").trim_end())
    });
    padded.collect()
}

#[test]
fn the_table_of_each_kind_shows_its_columns() {
    let tables = tables().into_iter().map(|(resource, rows)| {
        let lines = [vec![header(rows.kind)], rows.cells].concat();
        format!("{resource}\n{}", aligned(&lines))
    });
    let tables: Vec<_> = tables.collect();
    assert!(tables.len() > 50, "kinds are missing");
    expect_file!["tests/tables.txt"].assert_eq(&tables.join("\n"));
}

#[test]
fn a_row_includes_as_much_of_the_object_as_requested() {
    let kind = kinds().by_resource("configmaps").unwrap();
    let object = kind
        .from_json(br#"{"metadata":{"name":"c"},"data":{"a":"b"}}"#)
        .unwrap();
    let row = |include| row(&*object, include, "v1", Timestamp::UNIX_EPOCH);
    assert_eq!(row(Include::Nothing)["object"], Value::Null);
    assert_eq!(
        row(Include::Metadata)["object"]["kind"],
        "PartialObjectMetadata"
    );
    assert_eq!(row(Include::Object)["object"]["data"]["a"], "b");
}

#[test]
fn the_row_of_a_pod_that_has_ended_is_completed() {
    let kind = kinds().by_resource("pods").unwrap();
    let conditions = |phase: &str| {
        let pod = json!({ "status": { "phase": phase } }).to_string();
        let pod = kind.from_json(pod.as_bytes()).unwrap();
        row(&*pod, Include::Metadata, "v1", Timestamp::UNIX_EPOCH)["conditions"].clone()
    };
    assert_eq!(conditions("Running"), Value::Null);
    for phase in ["Succeeded", "Failed"] {
        let condition = &conditions(phase)[0];
        assert_eq!(condition["type"], "Completed");
        assert_eq!(condition["reason"], phase);
    }
}
