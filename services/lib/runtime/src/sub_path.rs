//! Parts of volumes: opens them without leaving the volume, and binds them to places that no Pod can replace.
//!
//! A container may replace any part of the path by a link, at any time. The kernel itself keeps the resolution below
//! the volume (`openat2` with `RESOLVE_BENEATH`), and what it has opened is mounted by its descriptor, never by its
//! path.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    Dir, FileType, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, open as open_path, openat,
    openat2,
};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount_bind, mount_bind_recursive, unmount};

/// Number of attempts to resolve a path while others rename parts of it.
const ATTEMPTS: usize = 16;

/// Opens a path of a volume, and creates it as a directory if there is nothing. A new directory has the mode of the
/// volume. Links may lead anywhere in the volume.
///
/// # Errors
/// If the path leaves the volume, or cannot be created.
pub fn open(volume: &OwnedFd, sub_path: &str) -> io::Result<OwnedFd> {
    let path: PathBuf = parts(sub_path)?.into_iter().collect();
    let mode = Mode::from_raw_mode(fstat(volume)?.st_mode & 0o7777);
    open_beneath(volume, &path, Some(mode)).map_err(explained)
}

/// Opens a path of a volume that must exist.
///
/// # Errors
/// If there is nothing, or the path leaves the volume.
pub fn open_existing(volume: &OwnedFd, sub_path: &str) -> io::Result<OwnedFd> {
    let path: PathBuf = parts(sub_path)?.into_iter().collect();
    open_beneath(volume, &path, None).map_err(explained)
}

/// Opens a path below a directory, which has only names and may be empty. With `mode`, creates what there is not as
/// directories of that mode.
///
/// # Errors
/// `XDEV` if a link leads out of the directory, and those of the system.
pub fn open_beneath(root: &OwnedFd, path: &Path, mode: Option<Mode>) -> Result<OwnedFd, Errno> {
    let Some(mode) = mode else {
        return resolve(root, path);
    };
    let mut resolved = PathBuf::new();
    let mut last = resolve(root, &resolved)?;
    for part in path.components() {
        resolved.push(part);
        last = match resolve(root, &resolved) {
            Err(Errno::NOENT) => {
                create(&last, Path::new(&part), mode)?;
                resolve(root, &resolved)?
            }
            opened => opened?,
        };
    }
    Ok(last)
}

/// Opens the directory of a volume.
pub fn open_volume(volume: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open_path(volume, flags, Mode::empty())?)
}

/// Returns the parts of a relative path.
fn parts(sub_path: &str) -> io::Result<Vec<&std::ffi::OsStr>> {
    let mut parts = Vec::new();
    for part in Path::new(sub_path).components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ => return Err(explained(Errno::XDEV)),
        }
    }
    Ok(parts)
}

fn resolve(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut attempts = 1..ATTEMPTS;
    loop {
        match openat2(root, path, flags, Mode::empty(), beneath) {
            Err(Errno::AGAIN) if attempts.next().is_some() => {}
            opened => return opened,
        }
    }
}

fn create(parent: &OwnedFd, name: &Path, mode: Mode) -> Result<(), Errno> {
    match mkdirat(parent, name, mode) {
        // Another container of the Pod may have been faster.
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
        // The umask of this process does not apply to volumes. Opened again, because the directory may have been
        // replaced by a link meanwhile.
        Ok(()) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            fchmod(openat(parent, name, flags, Mode::empty())?, mode)
        }
    }
}

fn explained(error: Errno) -> io::Error {
    match error {
        Errno::XDEV => io::Error::other("the path is not within the volume"),
        other => other.into(),
    }
}

/// Returns the kubelet's message about a part of a volume that cannot be opened, with the cause.
pub fn refused(volume: &str, container: &str, cause: &io::Error) -> String {
    format!(
        "failed to prepare subPath for volumeMount {volume:?} of container {container:?}: {cause}"
    )
}

/// Opens what [`open_existing`] has found for reading.
///
/// # Errors
/// If it is no regular file: to open another could block.
pub fn open_regular(opened: &OwnedFd) -> io::Result<fs::File> {
    match FileType::from_raw_mode(fstat(opened)?.st_mode) {
        FileType::RegularFile => fs::File::open(path_of(opened)),
        _ => Err(io::Error::other("not a regular file")),
    }
}

/// Returns whether a descriptor is one of a directory.
pub fn is_directory(file: impl AsFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Directory)
}

/// Mounts what is open at a path of this machine.
///
/// # Errors
/// If there is something at the path that is of another kind, or this process may not mount.
pub fn bind(opened: &OwnedFd, target: &Path) -> io::Result<()> {
    Ok(mount_bind(path_of(opened), target)?)
}

/// As [`bind`], with all that is mounted below.
///
/// # Errors
/// As [`bind`].
pub fn bind_recursive(opened: &OwnedFd, target: &Path) -> io::Result<()> {
    Ok(mount_bind_recursive(path_of(opened), target)?)
}

fn path_of(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

/// A part of a volume, mounted at a path of this machine until it is dropped.
#[derive(Debug)]
pub struct Bound {
    target: PathBuf,
}

impl Bound {
    /// Mounts an open part of a volume below `folder`, by [`bind`] or [`bind_recursive`].
    ///
    /// # Errors
    /// As [`bind`].
    pub fn new(
        opened: &OwnedFd,
        folder: &Path,
        name: &str,
        bind: fn(&OwnedFd, &Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let target = folder.join(name);
        match is_directory(opened)? {
            true => fs::create_dir(&target)?,
            false => drop(fs::File::create_new(&target)?),
        }
        let bound = Self { target };
        bind(opened, &bound.target)?;
        Ok(bound)
    }

    /// Returns the path at which it is mounted.
    pub fn path(&self) -> &Path {
        &self.target
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // Containers that use it have mounts of their own by now. What is left is removed when the agent starts.
        let _ = remove(&self.target);
        if let Some(folder) = self.target.parent() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Unmounts and removes everything that an earlier agent has left below a directory. Never deletes what is mounted.
///
/// # Errors
/// If something cannot be removed.
pub fn clean(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => remove(folder),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    while unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {}
    if !fs::symlink_metadata(path)?.is_dir() {
        return match fs::symlink_metadata(path)?.len() {
            0 => fs::remove_file(path),
            _ => Err(io::Error::other("a file that is still mounted")),
        };
    }
    let names = {
        let opened = open_path(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let entries = Dir::read_from(opened)?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect::<Result<Vec<_>, Errno>>()?
    };
    for name in names
        .iter()
        .filter(|name| ![".", ".."].contains(&name.as_str()))
    {
        remove(&path.join(name))?;
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn inode(file: &OwnedFd) -> u64 {
        fstat(file).unwrap().st_ino
    }

    #[test]
    fn a_directory_that_does_not_exist_is_made_with_the_mode_of_the_volume() {
        let volume = tempfile::tempdir().unwrap();
        fs::set_permissions(volume.path(), fs::Permissions::from_mode(0o2777)).unwrap();
        let root = open_volume(volume.path()).unwrap();
        for path in ["a/b", "./a//b/"] {
            let opened = open(&root, path).unwrap();
            let made = fs::metadata(volume.path().join("a/b")).unwrap();
            assert_eq!(inode(&opened), made.ino());
            assert_eq!(made.mode() & 0o7777, 0o2777);
        }
        assert!(is_directory(open(&root, "").unwrap()).unwrap());
    }

    /// Checks K14.
    #[test]
    fn a_path_that_leaves_the_volume_is_refused() {
        let outside = tempfile::tempdir().unwrap();
        let volume = outside.path().join("volume");
        fs::create_dir_all(volume.join("inner")).unwrap();
        symlink("/etc", volume.join("absolute")).unwrap();
        symlink("../..", volume.join("up")).unwrap();
        symlink("inner", volume.join("within")).unwrap();
        symlink("missing", volume.join("dangling")).unwrap();
        let root = open_volume(&volume).unwrap();
        for path in [
            "absolute",
            "absolute/ssl",
            "up",
            "up/new",
            "..",
            "inner/../..",
            "/etc",
        ] {
            let refused = open(&root, path).unwrap_err().to_string();
            assert_eq!(refused, "the path is not within the volume", "{path}");
        }
        assert!(open(&root, "dangling").is_err());
        assert!(!outside.path().join("new").exists());
        let within = open(&root, "within/new").unwrap();
        let made = fs::metadata(volume.join("inner/new")).unwrap();
        assert_eq!(inode(&within), made.ino(), "a link within the volume");
    }

    #[test]
    fn a_path_that_must_exist_is_never_made() {
        let volume = tempfile::tempdir().unwrap();
        fs::create_dir_all(volume.path().join("a/b")).unwrap();
        let root = open_volume(volume.path()).unwrap();
        assert!(open_existing(&root, "a/./b").is_ok());
        for path in ["a/c", "../a", "/a"] {
            assert!(open_existing(&root, path).is_err(), "{path}");
        }
        assert!(!volume.path().join("a/c").exists());
    }

    #[test]
    fn a_file_is_opened_as_it_is() {
        let volume = tempfile::tempdir().unwrap();
        fs::write(volume.path().join("key"), "1").unwrap();
        let root = open_volume(volume.path()).unwrap();
        let opened = open(&root, "key").unwrap();
        assert!(!is_directory(&opened).unwrap());
        assert!(open(&root, "key/below").is_err());
    }

    #[test]
    fn what_is_mounted_is_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("volume");
        fs::create_dir_all(volume.join("sub")).unwrap();
        fs::write(volume.join("sub/data"), "kept").unwrap();
        let mounts = folder.path().join("mounts/uid");
        let root = open_volume(&volume).unwrap();
        let bound = |part: &str| Bound::new(&open(&root, part).unwrap(), &mounts, "0", bind);
        let first = match bound("sub") {
            Ok(first) => first,
            Err(error) => return eprintln!("SKIPPED: this process may not mount: {error}"),
        };
        assert!(first.path().join("data").exists());
        // An agent that was killed.
        std::mem::forget(first);
        clean(&folder.path().join("mounts")).unwrap();
        assert!(!mounts.exists() && volume.join("sub/data").exists());
        drop(bound("sub/data").unwrap());
        assert!(!mounts.exists() && volume.join("sub/data").exists());
    }
}
