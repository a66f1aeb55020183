//! Hands the configuration of a container over to its shim: as a file in memory, which is the stdin of the shim,
//! because the environment and the command line may contain secrets, which never reach a disk.
//!
//! The shim keeps the file as long as its container runs. Commands that run beside the container read it there, also
//! those of an agent that was restarted.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::process::Stdio;

use nix::unistd::dup2_stdin;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::folder::Folder;
use crate::ContainerConfig;

/// The stdin of this process. Opened by this path, the file is read from its start.
const STDIN: &str = "/proc/self/fd/0";

/// Returns the stdin of the shim of a container.
pub fn stdin_of_shim(config: &ContainerConfig) -> io::Result<Stdio> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("setpoint-container", flags)?);
    file.write_all(&serde_json::to_vec(config)?)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    file.rewind()?;
    Ok(file.into())
}

/// Returns the configuration that is the stdin of this process.
pub fn receive() -> io::Result<ContainerConfig> {
    Ok(serde_json::from_reader(File::open(STDIN)?)?)
}

/// Returns the stdin of this process for a child that receives the configuration, too.
pub fn pass_on() -> io::Result<Stdio> {
    Ok(File::open(STDIN)?.into())
}

/// Replaces the stdin of this process, so that the program of a container does not inherit the configuration.
pub fn close() -> io::Result<()> {
    Ok(dup2_stdin(File::open("/dev/null")?)?)
}

/// Returns the configuration of a container that runs.
///
/// # Errors
/// If its shim has ended.
pub fn of_running(folder: &Folder) -> io::Result<ContainerConfig> {
    let shim = folder.shim()?.ok_or(io::ErrorKind::NotFound)?;
    let mut json = Vec::new();
    shim.open_file("fd/0")?.read_to_end(&mut json)?;
    match json.is_empty() {
        // The shim is of an agent that handed nothing over.
        true => folder.config(),
        false => Ok(serde_json::from_slice(&json)?),
    }
}
