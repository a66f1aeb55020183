//! Paths of the machine that Pods mount.
//!
//! A Pod that writes to a path may replace any part of what is below it by a link. So a path is resolved by the kernel
//! beneath the directory that the settings allow, and what it has opened is mounted by its descriptor.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open as open_path};
use rustix::io::Errno;

use crate::{HostPath, sub_path};

/// The mode of directories that are made, as the kubelet's.
const MODE: u32 = 0o755;

impl HostPath {
    /// Returns whether it is one of the paths that the settings allow, to which Pods cannot make links.
    pub fn is_allowed_itself(&self) -> bool {
        self.path == self.root
    }

    /// Opens the path, and creates it as a directory if that is wanted and there is nothing.
    ///
    /// # Errors
    /// If there is nothing, or a link leads out of the allowed directory.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let (root, path) = (Path::new(&self.root), Path::new(&self.path));
        let below = path.strip_prefix(root);
        let below = below.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // If all of the machine is allowed, its links are, too.
        let whole = if root.parent().is_none() { path } else { root };
        if self.create && !whole.exists() {
            DirBuilder::new().recursive(true).mode(MODE).create(whole)?;
        }
        let opened = open_whole(whole)?;
        if below.as_os_str().is_empty() || whole == path {
            return Ok(opened);
        }
        let mode = self.create.then_some(Mode::from_raw_mode(MODE));
        sub_path::open_beneath(&opened, below, mode).map_err(|error| self.explained(error))
    }

    fn explained(&self, error: Errno) -> io::Error {
        match error {
            Errno::XDEV => io::Error::other(format!(
                "a link leads out of {:?}, which the setting host_paths names",
                self.root
            )),
            other => other.into(),
        }
    }

    /// Returns the message about a volume whose path cannot be opened.
    pub fn refused(&self, volume: &str, cause: &io::Error) -> String {
        format!("hostPath {:?} of volume {volume:?}: {cause}", self.path)
    }
}

fn open_whole(path: &Path) -> io::Result<OwnedFd> {
    Ok(open_path(
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn host(root: &Path, below: &str, create: bool) -> HostPath {
        HostPath {
            root: root.display().to_string(),
            path: root.join(below).display().to_string(),
            create,
        }
    }

    /// Checks DG18.
    #[test]
    fn a_link_never_leads_out_of_the_allowed_directory() {
        let machine = tempfile::tempdir().unwrap();
        let (allowed, secret) = (
            machine.path().join("allowed"),
            machine.path().join("secret"),
        );
        fs::create_dir_all(allowed.join("inner")).unwrap();
        fs::create_dir(&secret).unwrap();
        symlink("/", allowed.join("root")).unwrap();
        symlink("../secret", allowed.join("up")).unwrap();
        symlink("inner", allowed.join("within")).unwrap();
        symlink("/proc/self/root", allowed.join("magic")).unwrap();
        for below in ["root", "root/etc", "up", "up/new", "magic", "magic/etc/new"] {
            for create in [false, true] {
                let host = host(&allowed, below, create);
                let refused = host.open().unwrap_err();
                let message = host.refused("data", &refused);
                assert!(message.contains("a link leads out of"), "{message}");
            }
        }
        assert_eq!(
            fs::read_dir(&secret).unwrap().count(),
            0,
            "nothing is made there"
        );
        assert!(host(&allowed, "within/new", false).open().is_err());
        host(&allowed, "within/new", true).open().unwrap();
        assert!(allowed.join("inner/new").is_dir());
        fs::write(allowed.join("file"), "1").unwrap();
        host(&allowed, "file", false).open().unwrap();
    }

    #[test]
    fn an_allowed_path_may_be_a_link_or_a_file_itself() {
        let machine = tempfile::tempdir().unwrap();
        let (file, link) = (machine.path().join("file"), machine.path().join("link"));
        fs::write(&file, "1").unwrap();
        symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            let opened = host(path, "", false);
            assert!(
                HostPath {
                    path: opened.root.clone(),
                    ..opened
                }
                .open()
                .is_ok()
            );
        }
        let new = machine.path().join("new/allowed");
        host(&new, "a/b", true).open().unwrap();
        assert!(new.join("a/b").is_dir());
        assert!(host(Path::new("/"), "proc/self/fd", false).open().is_ok());
    }
}
