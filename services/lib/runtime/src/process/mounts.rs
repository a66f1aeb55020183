//! The mount namespace of a container: the machine's file system, with the container's volumes at their paths.
//!
//! The last step before the container's program makes the namespace, which ends with the last process in it. Paths that
//! do not exist are made on the machine, because its file system is the container's.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, setns, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change, mount_remount};

use super::process_handle::Process;
use crate::bind::Bind;
use crate::sub_path;

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
