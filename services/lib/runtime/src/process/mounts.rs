//! The mount namespace of a container: the machine's file system, with the container's volumes at their paths.
//!
//! The last step before the container's program makes the namespace, which ends with the last process in it. Paths that
//! do not exist are made on the machine, because its file system is the container's.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change, mount_remount};
use serde::{Deserialize, Serialize};

use super::process_handle::Process;
use crate::{HostPath, sub_path};

/// A volume, or a part of one, at a path of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The directory of the volume, unless it is a path of the machine.
    pub source: PathBuf,
    /// The path of the machine that the volume is.
    #[serde(default)]
    pub host: Option<HostPath>,
    /// The part of the volume; empty for all of it.
    pub sub_path: String,
    /// The path in the container.
    pub target: String,
    /// Whether the container may only read it.
    pub read_only: bool,
    /// Name of the volume.
    pub volume: String,
}

impl Bind {
    /// Opens what is mounted.
    ///
    /// # Errors
    /// If there is nothing, or a link leads out of the volume.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let volume = match &self.host {
            Some(host) => host.open()?,
            None => sub_path::open_volume(&self.source)?,
        };
        match self.sub_path.as_str() {
            "" => Ok(volume),
            part => sub_path::open(&volume, part),
        }
    }

    /// Returns the message about a volume of a container that cannot be opened.
    pub fn refused(&self, container: &str, cause: &io::Error) -> String {
        match &self.host {
            Some(host) if self.sub_path.is_empty() => host.refused(&self.volume, cause),
            _ => sub_path::refused(&self.volume, container, cause),
        }
    }
}

/// Returns whether this process may make mount namespaces.
pub fn are_possible() -> bool {
    // A namespace is one of a thread, which ends.
    let made = std::thread::spawn(|| new_namespace().is_ok());
    made.join().unwrap_or_default()
}

/// Moves this process, which must have a single thread, to a new mount namespace, and mounts the volumes there.
///
/// # Errors
/// If a volume cannot be mounted; the message names it.
pub fn enter_new(binds: &[Bind]) -> io::Result<()> {
    new_namespace()?;
    for bind in binds {
        mount(bind).map_err(|error| {
            let Bind { volume, target, .. } = bind;
            io::Error::other(format!(
                "cannot mount volume {volume:?} at {target:?}: {error}"
            ))
        })?;
    }
    Ok(())
}

fn new_namespace() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let propagation = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", propagation)?)
}

fn mount(bind: &Bind) -> io::Result<()> {
    let target = Path::new(&bind.target);
    if !target.is_absolute() || target.parent().is_none() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let opened = bind.open()?;
    match sub_path::is_directory(&opened)? {
        true => fs::create_dir_all(target)?,
        false if target.exists() => {}
        false => {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            drop(fs::File::create_new(target)?);
        }
    }
    sub_path::bind(&opened, target)?;
    match bind.read_only {
        true => Ok(mount_remount(
            target,
            MountFlags::BIND | MountFlags::RDONLY,
            c"",
        )?),
        false => Ok(()),
    }
}

/// Moves this process, which must have a single thread, to the mount namespace of another.
///
/// # Errors
/// If that has ended, or this process may not.
pub fn join(process: &Process) -> io::Result<()> {
    let namespace = process.open_file("ns/mnt")?;
    Ok(setns(namespace, CloneFlags::CLONE_NEWNS)?)
}
