//! JSON patches (RFC 6902), with limits on memory and time.

use json_patch::{AddOperation, MoveOperation, Patch, PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::{Error, failure};
use crate::{Kind, MAX_DEPTH, depth};

/// The limit of Kubernetes.
const MAX_OPERATIONS: usize = 10_000;
/// Bytes that `copy` operations may copy: the maximum size of a request. Each copy of the root doubles the document.
const MAX_COPIED: usize = 3 << 20;
/// Bytes of list entries that insertions and removals may move, which takes about 0.1 s.
const MAX_MOVED: usize = 1 << 30;

/// Applies a JSON patch.
///
/// # Errors
/// If the patch is malformed or exceeds a limit, a `test` fails, or a path does not exist.
pub fn json(_kind: &Kind, mut document: Value, patch: Value) -> Result<Value, Error> {
    let patch: Patch = serde_json::from_value(patch)
        .map_err(|error| Error::Malformed(format!("error decoding patch: {error}")))?;
    if patch.len() > MAX_OPERATIONS {
        let found = patch.len();
        return Err(Error::TooLarge(format!(
            "the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {found}"
        )));
    }
    let (mut copied, mut moved) = (0, 0);
    for operation in patch.iter() {
        copied += copied_size(&document, operation);
        if copied > MAX_COPIED {
            return Err(Error::TooLarge(format!(
                "a JSON patch may copy {MAX_COPIED} bytes at most"
            )));
        }
        moved += moved_size(&document, operation);
        if moved > MAX_MOVED {
            return Err(Error::TooLarge(format!(
                "a JSON patch may move {MAX_MOVED} bytes of list entries at most"
            )));
        }
        if deepest(&document, operation) > MAX_DEPTH {
            return Err(Error::TooLarge(format!(
                "a JSON patch may nest {MAX_DEPTH} levels at most"
            )));
        }
        if is_test_of_absence(&document, operation) {
            continue;
        }
        let added = as_add(&document, operation);
        let operation = added.as_ref().unwrap_or(operation);
        json_patch::patch(&mut document, std::slice::from_ref(operation)).map_err(|error| {
            let text = failure::message(&document, operation);
            match error.kind {
                PatchErrorKind::TestFailed => Error::TestFailed(text),
                _ => Error::Unfit(text),
            }
        })?;
    }
    Ok(document)
}

/// Returns whether the operation tests that a key of an object is null, and the object has no such key. It passes in
/// Kubernetes, although RFC 6902 requires the key; clients add the first finalizer this way.
fn is_test_of_absence(document: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let path = test.path.as_str();
    let parent = path.rsplit_once('/').map(|(parent, _)| parent);
    let parent = parent.and_then(|parent| document.pointer(parent));
    test.value.is_null() && parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
}

/// Returns the addition that an operation is which replaces a key that an object does not have: Kubernetes allows it,
/// against RFC 6902.
fn as_add(document: &Value, operation: &PatchOperation) -> Option<PatchOperation> {
    let PatchOperation::Replace(replace) = operation else {
        return None;
    };
    let path = replace.path.as_str();
    let (parent, _) = path.rsplit_once('/')?;
    let is_missing = document.pointer(path).is_none();
    let in_object = document.pointer(parent)?.is_object();
    (is_missing && in_object).then(|| {
        PatchOperation::Add(AddOperation {
            path: replace.path.clone(),
            value: replace.value.clone(),
        })
    })
}

/// Returns the size of the value that the operation copies, or moves to a deeper level, for which its depth has to be
/// computed.
fn copied_size(document: &Value, operation: &PatchOperation) -> usize {
    let from = match operation {
        PatchOperation::Copy(copy) => copy.from.as_str(),
        PatchOperation::Move(one) if is_deeper(one) => one.from.as_str(),
        _ => return 0,
    };
    let source = document.pointer(from);
    source.map_or(0, |value| value.to_string().len())
}

/// Returns whether a value gets deeper by being moved.
fn is_deeper(one: &MoveOperation) -> bool {
    level(one.path.as_str()) > level(one.from.as_str())
}

/// Returns the number of objects and lists that a path leads through.
fn level(path: &str) -> usize {
    path.matches('/').count()
}

/// Returns the depth of the value that an operation puts into the document, counted from the root. Without a limit,
/// values could be nested in each other until a recursion overflows the stack.
fn deepest(document: &Value, operation: &PatchOperation) -> usize {
    use PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let depth_of = |from: &str| document.pointer(from).map_or(0, depth);
    let (path, value) = match operation {
        Add(add) => (add.path.as_str(), depth(&add.value)),
        Replace(replace) => (replace.path.as_str(), depth(&replace.value)),
        Copy(copy) => (copy.path.as_str(), depth_of(copy.from.as_str())),
        Move(one) if is_deeper(one) => (one.path.as_str(), depth_of(one.from.as_str())),
        Move(_) | Remove(_) | Test(_) => return 0,
    };
    level(path) + value
}

/// Returns the size of the lists that the operation inserts into or removes from.
fn moved_size(document: &Value, operation: &PatchOperation) -> usize {
    use PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let size = |path: &str| {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let list = document.pointer(parent).and_then(Value::as_array);
        list.map_or(0, |list| size_of_val(list.as_slice()))
    };
    match operation {
        Add(add) => size(add.path.as_str()),
        Remove(remove) => size(remove.path.as_str()),
        Copy(copy) => size(copy.path.as_str()),
        Move(one) => size(one.from.as_str()) + size(one.path.as_str()),
        Replace(_) | Test(_) => 0,
    }
}
