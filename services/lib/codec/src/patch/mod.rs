//! Patches: JSON patch (RFC 6902), merge patch (RFC 7386), and Kubernetes' strategic merge patch.

mod budget;
mod error;
mod failure;
mod identity;
mod json;
mod lists;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::Kind;
pub use error::Error;
pub use json::json;
pub use strategic::strategic;

/// Applies a merge patch (RFC 7386): objects are merged, `null` removes a field, any other value replaces it.
///
/// # Errors
/// If the patch is not an object.
pub fn merge(_kind: &Kind, mut document: Value, patch: Value) -> Result<Value, Error> {
    if !patch.is_object() {
        return Err(Error::Malformed(
            "a merge patch must be a JSON object".to_owned(),
        ));
    }
    json_patch::merge(&mut document, &patch);
    Ok(document)
}
