//! A small file system that a test fills.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A file system of one MiB and 200 files in memory, which is unmounted when this is dropped.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts the file system. `None`, with a message, if this process may not.
    pub fn mount() -> Option<Self> {
        let mounted = tempfile::tempdir().unwrap();
        let options = ["-t", "tmpfs", "-o", "size=1m,nr_inodes=200", "tmpfs"];
        let mount = Command::new("mount")
            .args(options)
            .arg(mounted.path())
            .status();
        if !mount.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: mounting a file system requires root");
            return None;
        }
        Some(Self(mounted))
    }

    /// Returns the path of its root.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the directory of what [`Self::fill`] writes.
    pub fn filling(&self) -> PathBuf {
        self.path().join("filling")
    }

    /// Takes all space and all files that are left.
    pub fn fill(&self) {
        std::fs::create_dir(self.filling()).unwrap();
        let path = |number: u32| self.filling().join(number.to_string());
        let mut space = File::create(path(0)).unwrap();
        while space.write_all(&[0; 4096]).is_ok() {}
        let full = (1..).find_map(|number| File::create(path(number)).err());
        assert_eq!(full.unwrap().kind(), std::io::ErrorKind::StorageFull);
    }

    /// Gives them back.
    pub fn free(&self) {
        std::fs::remove_dir_all(self.filling()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}
