//! Files that settings name, with settings of their own.

use std::path::Path;

use setpoint_document as document;

/// Reads a file.
///
/// # Errors
/// With its name, if it cannot be read or is too large.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    document::read(path).map_err(|error| format!("reading {}: {error}", path.display()))
}
