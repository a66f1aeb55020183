//! The volumes of Pods as directories of this machine, which the mount namespaces of containers bind to their paths.
//!
//! ```text
//! <state>/volumes/<uid>/<volume>             emptyDir, and files that are not secret
//! /dev/shm/setpoint-<state>/<uid>/<volume>   in memory: emptyDir of medium Memory, and secrets
//! ```
//! Nothing is mounted outside of the namespaces of containers, so that nothing stays mounted when they end.

use std::fs::{self, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use setpoint_host::private;
use setpoint_model::hash::fnv32a;

use crate::archive::{self, Ownership, RO_MASK, RW_MASK};
use crate::bind::Bind;
use crate::{ContainerConfig, MAX_FILE, Volume, VolumeKind, layout, sub_path};

/// The machine's file system in memory.
const MEMORY: &str = "/dev/shm";

/// The directories of all volumes.
pub struct Volumes {
    disk: PathBuf,
    memory: PathBuf,
}

impl Volumes {
    /// Returns those of a state directory.
    pub fn of(state: &Path) -> Self {
        let disk = state.join("volumes");
        let hash = fnv32a(disk.as_os_str().as_encoded_bytes());
        let memory = match Path::new(MEMORY).is_dir() {
            true => Path::new(MEMORY).join(format!("setpoint-{hash:08x}")),
            false => state.join("volumes-in-memory"),
        };
        Self { disk, memory }
    }

    /// Creates the volumes of a Pod that do not exist, and fills those that consist of files.
    pub fn create(&self, uid: &str, volumes: &[Volume]) -> io::Result<()> {
        for volume in volumes {
            let ownership = match &volume.kind {
                VolumeKind::Host(_) | VolumeKind::Image => continue,
                VolumeKind::Files { .. } => Ownership::folder(0o755, RO_MASK, volume.group),
                _ => Ownership::folder(0o777, RW_MASK, volume.group),
            };
            let parent = self.parent(&volume.kind).join(uid);
            private::create_dir(self.parent(&volume.kind))?;
            private::create_dir(&parent)?;
            make(&parent.join(&volume.name), ownership)?;
            self.publish(uid, volume)?;
        }
        Ok(())
    }

    /// Replaces the files of a volume. Does nothing for one that does not consist of files.
    pub fn publish(&self, uid: &str, volume: &Volume) -> io::Result<()> {
        let VolumeKind::Files { files, .. } = &volume.kind else {
            return Ok(());
        };
        let folder = self.parent(&volume.kind).join(uid).join(&volume.name);
        let archive = archive::of_version(files, volume.group)?;
        let version = layout::version(Timestamp::now());
        layout::publish(&folder, &version, archive.as_slice()).map(|_| ())
    }

    /// Reads a regular file of a volume.
    pub fn read_file(&self, uid: &str, volume: &str, path: &str) -> io::Result<Vec<u8>> {
        let folder = self.folder(uid, volume).ok_or(io::ErrorKind::NotFound)?;
        let folder = sub_path::open_volume(&folder)?;
        let opened = sub_path::open_existing(&folder, path.trim_start_matches('/'))?;
        let file = sub_path::open_regular(&opened)?;
        let mut content = Vec::new();
        let limit = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
        file.take(limit).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Returns the directory of a volume of a Pod, if there is one.
    pub fn folder(&self, uid: &str, volume: &str) -> Option<PathBuf> {
        let folders = [&self.memory, &self.disk].into_iter();
        let mut folders = folders.map(|root| root.join(uid).join(volume));
        folders.find(|folder| folder.is_dir())
    }

    /// Returns the names and directories of the volumes of a Pod.
    pub fn folders(&self, uid: &str) -> Vec<(String, PathBuf)> {
        let roots = [&self.disk, &self.memory].into_iter();
        let entries = roots.filter_map(|root| fs::read_dir(root.join(uid)).ok());
        let folders = entries.flatten().flatten().map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, entry.path())
        });
        folders.collect()
    }

    fn parent(&self, kind: &VolumeKind) -> &Path {
        match kind {
            VolumeKind::Memory(_) | VolumeKind::Files { secret: true, .. } => &self.memory,
            _ => &self.disk,
        }
    }

    /// Returns the mounts of a container, without those of images.
    pub fn binds(&self, config: &ContainerConfig) -> Vec<Bind> {
        // An image is no directory of this machine.
        let mounts = config.mounts.iter().filter(|mount| mount.image.is_none());
        let bind = mounts.map(|mount| {
            let own = |root: &Path| root.join(&config.id.uid).join(&mount.volume);
            let source = match own(&self.memory).exists() {
                true => own(&self.memory),
                false => own(&self.disk),
            };
            Bind {
                source,
                host: mount.host.clone(),
                sub_path: mount.sub_path.clone(),
                target: mount.path.clone(),
                read_only: mount.read_only,
                volume: mount.volume.clone(),
                propagates: mount.propagates,
                recursive_read_only: mount.recursive_read_only,
            }
        });
        bind.collect()
    }

    /// Removes the volumes of a Pod.
    pub fn remove(&self, uid: &str) -> io::Result<()> {
        remove_dir(&self.disk.join(uid))?;
        remove_dir(&self.memory.join(uid))?;
        // Fails as long as another Pod has volumes in memory.
        let _ = fs::remove_dir(&self.memory);
        Ok(())
    }

    /// Removes the volumes of Pods that are not known.
    pub fn remove_others(&self, known: impl Fn(&str) -> bool) -> io::Result<()> {
        for root in [&self.disk, &self.memory] {
            let entries = match fs::read_dir(root) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                if !known(&entry.file_name().to_string_lossy()) {
                    remove_dir(&entry.path())?;
                }
            }
        }
        Ok(())
    }
}

/// Removes a directory with all that is in it; does nothing if there is none.
///
/// # Errors
/// If something in it cannot be removed.
pub fn remove_dir(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn make(folder: &Path, ownership: Ownership) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    if ownership.group.is_some() {
        chown(folder, None, ownership.group)?;
    }
    fs::set_permissions(folder, Permissions::from_mode(ownership.mode))
}
