//! Documents of settings files that Kubernetes defines (audit policies, encryption configurations): values with the
//! paths of their fields, and errors in upstream's words.

mod errors;
mod field;

use serde_json::Value;

pub use errors::{Error, FieldErrors};
pub use field::Field;

/// Reads a document in YAML, of which JSON is a part.
///
/// # Errors
/// If it is malformed, has a key twice, or expands beyond the limits of the reader.
pub fn yaml(text: &[u8]) -> Result<Value, String> {
    serde_saphyr::from_slice(text).map_err(|error| {
        let error = error.to_string();
        // Without the excerpt: the file itself shows it better, and it may hold secrets.
        error.lines().next().unwrap_or_default().to_owned()
    })
}
