//! The namespaces of a container beside that of its mounts: the network of its Pod, and its host name.
//!
//! The shim enters them, so that all its children are in them.

use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Uid, sethostname};

use super::folder::{self, Folder};
use super::network;
use crate::SandboxConfig;

/// The namespaces below `/proc/<pid>/ns`.
const JOINED: [(&str, CloneFlags); 2] = [
    ("ns/net", CloneFlags::CLONE_NEWNET),
    ("ns/uts", CloneFlags::CLONE_NEWUTS),
];

/// Moves this process, which must have a single thread, to the namespaces of the container in this directory. Without
/// root there are none.
///
/// # Errors
/// If the network of its Pod is gone.
pub fn enter(folder: &Folder) -> io::Result<()> {
    let Some(pod) = folder.path().ancestors().nth(2) else {
        return Ok(());
    };
    if let Some(namespace) = network::of_pod(pod)? {
        namespace.enter()?;
    }
    match Uid::effective().is_root() {
        true => set_hostname(pod),
        false => Ok(()),
    }
}

/// Gives this process the host name of a Pod, unless the Pod is in the network of its node or this process may not.
fn set_hostname(pod: &Path) -> io::Result<()> {
    let config = folder::read::<SandboxConfig>(&pod.join("sandbox.json"))?;
    let config = config.filter(|config| !config.host_network);
    let Some(config) = config.filter(|_| unshare(CloneFlags::CLONE_NEWUTS).is_ok()) else {
        return Ok(());
    };
    Ok(sethostname(config.hostname())?)
}

/// Moves this process, which must have a single thread, to the namespaces of the shim of the container in this
/// directory. Without root they are those of this process.
///
/// # Errors
/// If that has ended.
pub fn join(folder: &Folder) -> io::Result<()> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let shim = folder.shim()?.ok_or(io::ErrorKind::NotFound)?;
    for (file, kind) in JOINED {
        setns(shim.open_file(file)?, kind)?;
    }
    Ok(())
}
