//! Directories and files that only the user of this process may read, write or list.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use nix::unistd::Uid;

/// The mode of new directories.
const DIRECTORY: u32 = 0o700;
/// The mode of new files.
const FILE: u32 = 0o600;
/// The permissions of the group and of others.
const OF_OTHERS: u32 = 0o077;
/// The mode bit of directories that all users write to, such as /tmp.
const STICKY: u32 = 0o1000;

/// Creates a directory with its parents. Removes the permissions of others from one that exists, unless it is sticky.
///
/// # Errors
/// If the file system refuses it.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY)
        .create(path)?;
    restrict(path)
}

/// Creates a directory whose parent others may write to. Removes the permissions of others from one
/// that exists.
///
/// # Errors
/// If another user has made it, it is a link, or the file system refuses it.
pub fn create_dir(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != Uid::effective().as_raw() {
        let path = path.display();
        return Err(io::Error::other(format!(
            "{path} is not a directory of this process's user"
        )));
    }
    restrict(path)
}

fn restrict(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OF_OTHERS == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OF_OTHERS))
}

/// Returns options that create a file if there is none. The permissions of one that exists stay as they are.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(FILE);
    options
}

/// Opens a file with these options. Removes the permissions of others from one that exists.
///
/// # Errors
/// If the file system refuses it.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    let mode = file.metadata()?.permissions().mode();
    if mode & OF_OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(mode & !OF_OTHERS))?;
    }
    Ok(file)
}

/// Writes a file, as [`fs::write`].
///
/// # Errors
/// If the file system refuses it.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = options().write(true).truncate(true).open(path)?;
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    /// Checks DG7.
    #[test]
    fn others_have_no_permissions_of_what_is_made_or_found() {
        let root = tempfile::tempdir().unwrap();
        let [made, found, shared] =
            ["a/made", "found", "shared"].map(|name| root.path().join(name));
        for (path, mode) in [(&found, 0o755), (&shared, 0o1777)] {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        for path in [&made, &found, &shared] {
            create_dir_all(path).unwrap();
        }
        assert_eq!(
            [&made, &found, &shared].map(|path| mode(path)),
            [0o700, 0o700, 0o1777]
        );
        write(&made.join("file"), b"1").unwrap();
        assert_eq!(mode(&made.join("file")), 0o600);
        let found = found.join("file");
        fs::write(&found, b"1").unwrap();
        fs::set_permissions(&found, Permissions::from_mode(0o644)).unwrap();
        open(options().append(true), &found).unwrap();
        assert_eq!(mode(&found), 0o600);
    }

    /// Checks DG7.
    #[test]
    fn a_directory_that_another_user_could_have_made_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (own, link) = (root.path().join("own"), root.path().join("link"));
        for _ in 0..2 {
            create_dir(&own).unwrap();
        }
        symlink(&own, &link).unwrap();
        assert!(create_dir(&link).is_err());
        if Uid::effective().is_root() {
            std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
            assert!(create_dir(&own).is_err());
        }
    }
}
