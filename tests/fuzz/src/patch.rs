//! Patches of each type: the first byte says of which kind the patched object is, the rest is the patch.

use serde_json::Value;
use setpoint_codec::{Kind, patch, strict};

use crate::example::example;
use crate::stretch::stretch;

type Apply = fn(&Kind, Value, Value) -> Result<Value, patch::Error>;

/// RFC 6902.
pub fn json(input: &[u8]) {
    apply(input, patch::json);
}

/// RFC 7386; to apply a patch twice is to apply it once.
pub fn merge(input: &[u8]) {
    if let Some((kind, patch, patched)) = apply(input, patch::merge) {
        let twice = patch::merge(kind, patched.clone(), patch);
        assert_eq!(twice, Ok(patched));
    }
}

/// Kubernetes' strategic merge.
pub fn strategic(input: &[u8]) {
    apply(input, patch::strategic);
}

/// Patches an object, and reads the outcome as the gateway does.
fn apply(input: &[u8], apply: Apply) -> Option<(&'static Kind, Value, Value)> {
    let (first, patch) = input.split_first()?;
    let (kind, document) = example(*first);
    let patch: Value = serde_json::from_slice(&stretch(patch)).ok()?;
    let patched = apply(kind, document, patch.clone()).ok()?;
    let json = patched.to_string();
    strict::unknown_fields(kind, json.as_bytes());
    let _ = kind.from_json(json.as_bytes());
    Some((kind, patch, patched))
}
