//! The three ways to change a document in part: RFC 6902, RFC 7386, and Kubernetes' strategic merge.

mod budget;
mod error;
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

/// The document after a merge patch (RFC 7386): objects merge, `null` removes, all else replaces.
///
/// # Errors
/// When the patch is no object.
pub fn merge(_kind: &Kind, mut document: Value, patch: Value) -> Result<Value, Error> {
    if !patch.is_object() {
        return Err(Error::Malformed(
            "a merge patch must be a JSON object".to_owned(),
        ));
    }
    json_patch::merge(&mut document, &patch);
    Ok(document)
}
