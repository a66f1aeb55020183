//! Volumes at paths of containers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{HostPath, RecursiveReadOnly, sub_path};

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
    /// Whether what is mounted below it later appears in the container.
    #[serde(default)]
    pub propagates: bool,
    /// Whether it is read-only with all that is mounted below it.
    #[serde(default)]
    pub recursive_read_only: RecursiveReadOnly,
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
