//! Documents of settings files that Kubernetes defines (audit policies, encryption configurations): values with the
//! paths of their fields, and errors in upstream's words.

mod errors;
mod field;

use std::path::Path;
use std::{fs, io};

use serde_json::Value;

pub use errors::{Error, FieldErrors};
pub use field::Field;

/// The largest size of a file in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a file.
///
/// # Errors
/// If it cannot be read, or is larger than a mebibyte.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > LARGEST {
        return Err(io::Error::other(format!(
            "it is larger than {LARGEST} bytes"
        )));
    }
    fs::read(path)
}

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
