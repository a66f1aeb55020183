//! Measures the space that the files of a directory hold.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, lstat, open, openat2, statat,
};

/// Maximum number of files that one measurement counts. Its result is a lower bound if there are more.
const MAX_FILES: u64 = 500_000;
/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

/// Space of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes of the blocks in use.
    pub bytes: u64,
    /// Number of files and directories.
    pub inodes: u64,
}

/// The space that a container holds, of what can be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerSpace {
    /// The bytes of its writable layer, whose inodes are not known.
    pub layer: Option<u64>,
    /// Its log, with the older files that it was rotated to.
    pub log: Option<Space>,
}

impl ContainerSpace {
    /// Returns the sum.
    pub fn total(self) -> Space {
        let layer = Space {
            bytes: self.layer.unwrap_or_default(),
            inodes: 0,
        };
        layer.plus(self.log.unwrap_or_default())
    }
}

impl Space {
    /// Returns the sum, saturating.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(more.bytes),
            inodes: self.inodes.saturating_add(more.inodes),
        }
    }

    /// Measures a single file, or a link itself.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Ok(Self::of_stat(&lstat(path)?))
    }

    fn of_stat(stat: &Stat) -> Self {
        let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
        Self {
            bytes: blocks.saturating_mul(BLOCK),
            inodes: 1,
        }
    }

    /// Measures a directory and all that is in it: each file once, however many names it has. Links are not followed,
    /// and other file systems that are mounted in it do not count. Files that vanish or cannot be read are left out.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(folder, flags, Mode::empty())?;
        let stat = fstat(&root)?;
        let mut walk = Walk {
            sum: Self::default(),
            seen: HashSet::new(),
            left: vec![PathBuf::from(".")],
        };
        walk.count(&stat);
        while let Some(path) = walk.left.pop() {
            // A container may replace any part of the path by a link while this runs.
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            match openat2(&root, &path, flags, Mode::empty(), beneath).and_then(Dir::new) {
                Ok(opened) => walk.directory(&path, opened, stat.st_dev),
                Err(error) if path == Path::new(".") => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(walk.sum)
    }
}

struct Walk {
    sum: Space,
    /// The inodes with several names that were counted.
    seen: HashSet<u64>,
    /// The directories that are left, relative to the first.
    left: Vec<PathBuf>,
}

impl Walk {
    fn directory(&mut self, path: &Path, mut opened: Dir, device: u64) {
        while let Some(Ok(entry)) = opened.next() {
            if self.sum.inodes >= MAX_FILES {
                self.left.clear();
                return;
            }
            let name = entry.file_name();
            if [b".".as_slice(), b".."].contains(&name.to_bytes()) {
                continue;
            }
            let Ok(folder) = opened.fd() else {
                return;
            };
            let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if stat.st_dev != device {
                continue;
            }
            self.count(&stat);
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                self.left
                    .push(path.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }

    fn count(&mut self, stat: &Stat) {
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !is_directory && stat.st_nlink > 1 && !self.seen.insert(stat.st_ino) {
            return;
        }
        self.sum = self.sum.plus(Space::of_stat(stat));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_file_counts_once_and_links_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let (volume, other) = (root.path().join("volume"), root.path().join("other"));
        fs::create_dir_all(volume.join("deep/er")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("large"), vec![7; 1 << 20]).unwrap();
        symlink(&other, volume.join("link")).unwrap();
        let empty = Space::of(&volume).unwrap();
        assert_eq!(empty.inodes, 4, "three directories and a link");
        fs::write(volume.join("deep/er/file"), vec![7; 100_000]).unwrap();
        fs::hard_link(volume.join("deep/er/file"), volume.join("again")).unwrap();
        let full = Space::of(&volume).unwrap();
        assert_eq!(full.inodes, 5);
        let grown = full.bytes - empty.bytes;
        assert!((100_000..200_000).contains(&grown), "{grown}");
    }

    #[test]
    fn names_that_are_no_text_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(OsStr::from_bytes(b"\xff"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        assert_eq!(Space::of(root.path()).unwrap().inodes, 3);
    }

    #[test]
    fn a_directory_that_does_not_exist_has_no_size() {
        let root = tempfile::tempdir().unwrap();
        assert!(Space::of(&root.path().join("none")).is_err());
    }
}
