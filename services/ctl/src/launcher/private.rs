//! Files and directories that only their user may read.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, set_permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE: u32 = 0o600;
const DIR: u32 = 0o700;

/// Opens a file. One that exists loses the permissions of others.
///
/// # Errors
/// Those of the file system.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Creates a directory and its parents. One that exists loses the permissions of others.
///
/// # Errors
/// Those of the file system.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR).create(path)?;
    set_permissions(path, Permissions::from_mode(DIR))
}
