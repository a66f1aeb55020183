//! The series that the dashboards query.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use serde_json::Value;

/// Prefixes of Setpoint's metrics, and of upstream's metrics that Setpoint exports.
const PREFIXES: [&str; 9] = [
    "apiserver_",
    "controller_runtime_",
    "kubelet_",
    "leader_election_",
    "process_",
    "rest_client_",
    "scheduler_",
    "setpoint_",
    "workqueue_",
];

fn folder() -> std::path::PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/dashboards").into()
}

/// Reads a file of `deploy/dashboards`.
pub fn file(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// Returns all expressions of all dashboards.
pub fn expressions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "json") {
            let text = std::fs::read_to_string(&path).unwrap();
            collect(&serde_json::from_str(&text).unwrap(), &mut found);
        }
    }
    assert!(!found.is_empty(), "the dashboards have expressions");
    found
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Object(fields) => {
            let expression = fields.get("expr").and_then(Value::as_str);
            found.extend(expression.map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        _ => {}
    }
}

/// Returns the series that an expression names.
pub fn names(expression: &str) -> Vec<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':');
    let words = expression.split(word);
    let ours = words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
    ours.map(str::to_owned).collect()
}
