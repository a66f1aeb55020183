//! Files that settings name, with settings of their own.

use std::fs;
use std::io;
use std::path::Path;

/// The largest size of a file in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a file.
///
/// # Errors
/// If it cannot be read, or is too large.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("reading {}: {error}", path.display());
    if fs::metadata(path).map_err(failed)?.len() > LARGEST {
        return Err(format!("{} is larger than {LARGEST} bytes", path.display()));
    }
    fs::read(path).map_err(failed)
}
