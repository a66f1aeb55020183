//! Patches of each type. The first byte selects the kind of the patched object, the rest is the patch.

use serde_json::Value;
use setpoint_codec::{Kind, patch, strict};

use crate::example::example;
use crate::stretch::stretch;

type Apply = fn(&Kind, Value, Value) -> Result<Value, patch::Error>;

/// JSON patches (RFC 6902).
pub fn json(input: &[u8]) {
    apply(input, patch::json);
}

/// Merge patches (RFC 7386), which must be idempotent.
pub fn merge(input: &[u8]) {
    if let Some((kind, patch, patched)) = apply(input, patch::merge) {
        let twice = patch::merge(kind, patched.clone(), patch);
        assert_eq!(twice, Ok(patched));
    }
}

/// Strategic merge patches.
pub fn strategic(input: &[u8]) {
    apply(input, patch::strategic);
}

/// Patches an object and decodes the result as the gateway does.
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
