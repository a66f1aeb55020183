//! RFC 6902, bounded: a short patch must not make a huge document.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::Error;
use crate::Kind;

/// As in Kubernetes.
const MAX_OPERATIONS: usize = 10_000;
/// The size of a request: each copy of the whole doubles the document, so a few lines could fill the memory.
const MAX_COPIED: usize = 3 << 20;

/// The document after a JSON patch.
///
/// # Errors
/// When the patch is malformed or too large, a `test` fails, or a path does not exist.
pub fn json(_kind: &Kind, mut document: Value, patch: Value) -> Result<Value, Error> {
    let patch: Patch = serde_json::from_value(patch)
        .map_err(|error| Error::Malformed(format!("error decoding patch: {error}")))?;
    if patch.len() > MAX_OPERATIONS {
        let found = patch.len();
        return Err(Error::TooLarge(format!(
            "the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {found}"
        )));
    }
    let mut copied = 0;
    for operation in patch.iter() {
        copied += copied_size(&document, operation);
        if copied > MAX_COPIED {
            return Err(Error::TooLarge(format!(
                "a JSON patch may copy {MAX_COPIED} bytes at most"
            )));
        }
        json_patch::patch(&mut document, std::slice::from_ref(operation))
            .map_err(|error| Error::Unfit(error.kind.to_string()))?;
    }
    Ok(document)
}

fn copied_size(document: &Value, operation: &PatchOperation) -> usize {
    let PatchOperation::Copy(copy) = operation else {
        return 0;
    };
    let source = document.pointer(copy.from.as_str());
    source.map_or(0, |value| value.to_string().len())
}
