//! The messages of operations of a JSON patch that cannot be applied, in the words of Go's `json-patch`, as upstream's
//! server has them: each names the operation and its path.

use json_patch::PatchOperation;
use serde_json::Value;

const MISSING: &str = "missing value";
const INVALID_INDEX: &str = "invalid index referenced";

/// Returns the message of an operation that could not be applied to a document.
pub(super) fn message(document: &Value, operation: &PatchOperation) -> String {
    use PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let path = operation.path().as_str();
    let container = container(document, path);
    match operation {
        Test(_) if container.is_none() => {
            format!("test operation does not apply: is missing path: {path}: {MISSING}")
        }
        Test(_) => format!("testing value {path} failed: test failed"),
        Add(_) => within(container, "add", path),
        Remove(_) => within(container, "remove", path),
        Replace(_) if container.is_none() => {
            format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
        }
        Replace(_) => {
            format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
        }
        Move(one) => from(document, "move", one.from.as_str(), path),
        Copy(one) => from(document, "copy", one.from.as_str(), path),
    }
}

/// Returns the object or list that has the last part of a path.
fn container<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    let (parent, _) = path.rsplit_once('/')?;
    let container = document.pointer(parent)?;
    (container.is_object() || container.is_array()).then_some(container)
}

fn within(container: Option<&Value>, name: &str, path: &str) -> String {
    match container {
        None => {
            format!("{name} operation does not apply: doc is missing path: {path:?}: {MISSING}")
        }
        Some(container) => {
            format!(
                "error in {name} for path: '{path}': {}",
                at(container, path)
            )
        }
    }
}

/// Returns the message of an operation with a source.
fn from(document: &Value, name: &str, from: &str, path: &str) -> String {
    let Some(source) = container(document, from) else {
        return format!(
            "{name} operation does not apply: doc is missing from path: {from}: {MISSING}"
        );
    };
    if document.pointer(from).is_none() {
        return format!("error in {name} for path: '{from}': {}", at(source, from));
    }
    match container(document, path) {
        None => {
            format!(
                "{name} operation does not apply: doc is missing destination path: {path}: {MISSING}"
            )
        }
        Some(target) => format!("error in {name} for path: '{path}': {}", at(target, path)),
    }
}

/// Returns the problem of the last part of a path.
fn at(container: &Value, path: &str) -> String {
    let key = path.rsplit_once('/').map_or(path, |(_, key)| key);
    let key = key.replace("~1", "/").replace("~0", "~");
    match (container, key.parse::<i64>()) {
        (Value::Array(_), Ok(index)) => {
            format!("Unable to access invalid index: {index}: {INVALID_INDEX}")
        }
        (Value::Array(_), Err(_)) => format!(
            "value was not a proper array index: '{key}': strconv.Atoi: parsing {key:?}: invalid syntax"
        ),
        _ => format!("Unable to remove nonexistent key: {key}: {MISSING}"),
    }
}
