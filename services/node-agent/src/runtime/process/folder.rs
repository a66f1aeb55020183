//! The files of one container, which outlive the agent: what it is, who watches over it, how it ended.
//!
//! ```text
//! config.json ─▶ shim.json ─▶ started.json ─▶ exit.json      each written whole or not at all
//!  (agent)        (claim)       (shim)         (shim, or the agent once the shim is gone)
//! ```
//! Whoever links `shim.json` first decides whether the container runs: its shim, or an agent that came back too early.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::hold::Process;
use crate::runtime::{ContainerConfig, Exit};

/// Where one attempt at a container keeps its files.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// The container's process, once there is one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Started {
    /// The leader of its process group.
    pub process: Process,
    /// When it began.
    pub at: Timestamp,
}

impl Folder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder of a new container.
    pub fn create(&self, config: &ContainerConfig) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        write(&self.0.join("config.json"), config)
    }

    pub fn config(&self) -> io::Result<ContainerConfig> {
        let config = read(&self.0.join("config.json"))?;
        config.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Makes this process the container's shim, unless somebody was faster.
    pub fn claim(&self, shim: &Process) -> io::Result<()> {
        let draft = self.0.join(format!("shim.json.{}", std::process::id()));
        fs::write(&draft, serde_json::to_vec(shim)?)?;
        let linked = fs::hard_link(&draft, self.0.join("shim.json"));
        fs::remove_file(&draft)?;
        linked
    }

    pub fn shim(&self) -> io::Result<Option<Process>> {
        read(&self.0.join("shim.json"))
    }

    /// Notes the container's process; its bare number is there for people, too.
    pub fn write_started(&self, started: &Started) -> io::Result<()> {
        fs::write(self.0.join("pid"), format!("{}\n", started.process.pid))?;
        write(&self.0.join("started.json"), started)
    }

    pub fn started(&self) -> io::Result<Option<Started>> {
        read(&self.0.join("started.json"))
    }

    pub fn write_exit(&self, exit: &Exit) -> io::Result<()> {
        write(&self.0.join("exit.json"), exit)
    }

    pub fn exit(&self) -> io::Result<Option<Exit>> {
        read(&self.0.join("exit.json"))
    }

    /// Opens the file for why the container's program could not be started.
    pub fn create_start_error(&self) -> io::Result<fs::File> {
        fs::File::create(self.0.join("start-error"))
    }

    /// Why the container's program could not be started, if it could not.
    pub fn start_error(&self) -> Option<String> {
        let message = fs::read_to_string(self.0.join("start-error")).ok();
        message.filter(|message| !message.is_empty())
    }

    /// Where the container's output goes.
    pub fn log(&self) -> io::Result<fs::File> {
        fs::File::options()
            .create(true)
            .append(true)
            .open(self.0.join("log"))
    }
}

/// The parsed file, or `None` where there is none.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts the file in place by one rename, so that nobody ever reads half of it.
pub fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let draft = path.with_extension("draft");
    fs::write(&draft, serde_json::to_vec(value)?)?;
    fs::rename(draft, path)
}
