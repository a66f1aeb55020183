//! Directories and files of the agent that other users of the machine neither read nor list.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use nix::unistd::Uid;

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;
/// The permissions of the group and of others.
const OF_OTHERS: u32 = 0o077;
/// The mode bit of directories that all users write to, such as /tmp.
const STICKY: u32 = 0o1000;

/// Creates a directory with its parents. Takes the permissions of others from one that exists, unless it is sticky.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY)
        .create(path)?;
    restrict(path)
}

/// Creates a directory whose parent others may write to. Takes the permissions of others from one that exists.
///
/// # Errors
/// If another user has made it, or it is a link.
pub fn create_dir(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != Uid::effective().as_raw() {
        let path = path.display();
        return Err(io::Error::other(format!(
            "{path} is not a directory of the agent's user"
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

/// Returns the options to create a file.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(FILE);
    options
}

/// Writes a file, as [`fs::write`].
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
    fn others_have_no_permissions_of_what_the_agent_makes_or_finds() {
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
