//! The state files of one attempt at a container, which survive restarts of the agent.
//!
//! ```text
//! config.json ─▶ shim.json ─▶ started.json ─▶ exit.json      each written atomically
//!  (agent)        (claim)       (shim)         (shim, or the agent once the shim is gone)
//! ```
//! The file has no secrets: the shim gets the rest of the configuration as its stdin.
//!
//! Room for `exit.json` is reserved before anything else, so that the end of a container is recorded on a full disk,
//! too. The first to link `shim.json` decides whether the container runs: its shim, or an agent that considers the
//! start as failed.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use setpoint_host::private;
use setpoint_proto::core::ResourceRequirements;

use super::process_handle::Process;
use crate::bind::Bind;
use crate::{ContainerConfig, Exit};

/// Size reserved for the record of an end: that of its message, which JSON may write as six bytes for each, and of the
/// rest.
const EXIT_SIZE: usize = 16 << 10;

/// Name of the working directory of a Pod's containers.
pub const WORK: &str = ".work";

/// The directory of one attempt at a container.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// The process of a started container.
#[derive(Debug, Serialize, Deserialize)]
pub struct Started {
    /// The leader of its process group.
    pub process: Process,
    /// Start time.
    pub at: Timestamp,
}

impl Folder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the directory of a new container.
    pub fn create(&self, config: &ContainerConfig, mounts: &[Bind]) -> io::Result<()> {
        private::create_dir_all(&self.0)?;
        private::write(&self.exit_draft(), &[0; EXIT_SIZE])?;
        write(&self.0.join("mounts.json"), &mounts)?;
        write(&self.0.join("config.json"), &config.without_secrets())
    }

    /// Returns the configuration, without its environment and its command line.
    pub fn config(&self) -> io::Result<ContainerConfig> {
        let config = read(&self.0.join("config.json"))?;
        config.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Records other requests and limits of a container whose shim has read its configuration.
    pub fn set_resources(&self, resources: &ResourceRequirements) -> io::Result<()> {
        let config = ContainerConfig {
            resources: resources.clone(),
            ..self.config()?
        };
        write(&self.0.join("config.json"), &config)
    }

    /// Returns the mounts of the container.
    pub fn mounts(&self) -> io::Result<Vec<Bind>> {
        Ok(read(&self.0.join("mounts.json"))?.unwrap_or_default())
    }

    /// Records that the mounts are made, before the program of the container is executed.
    pub fn write_mounted(&self) -> io::Result<()> {
        private::write(&self.0.join("mounted"), &[])
    }

    pub fn is_mounted(&self) -> bool {
        self.0.join("mounted").exists()
    }

    /// Claims the container for this shim.
    ///
    /// # Errors
    /// `AlreadyExists` if it is claimed already.
    pub fn claim(&self, shim: &Process) -> io::Result<()> {
        let draft = self.0.join(format!("shim.json.{}", std::process::id()));
        private::write(&draft, &serde_json::to_vec(shim)?)?;
        let linked = fs::hard_link(&draft, self.0.join("shim.json"));
        fs::remove_file(&draft)?;
        linked
    }

    pub fn shim(&self) -> io::Result<Option<Process>> {
        read(&self.0.join("shim.json"))
    }

    /// Records the container's process, and its pid in a file for operators.
    pub fn write_started(&self, started: &Started) -> io::Result<()> {
        let pid = format!("{}\n", started.process.pid);
        private::write(&self.0.join("pid"), pid.as_bytes())?;
        write(&self.0.join("started.json"), started)
    }

    pub fn started(&self) -> io::Result<Option<Started>> {
        read(&self.0.join("started.json"))
    }

    /// Records the end atomically, in the space that was reserved for it.
    pub fn write_exit(&self, exit: &Exit) -> io::Result<()> {
        let json = serde_json::to_vec(exit)?;
        let mut draft = private::options().write(true).open(self.exit_draft())?;
        draft.write_all(&json)?;
        draft.set_len(json.len().try_into().unwrap_or(u64::MAX))?;
        fs::rename(self.exit_draft(), self.0.join("exit.json"))
    }

    fn exit_draft(&self) -> PathBuf {
        self.0.join("exit.draft")
    }

    pub fn exit(&self) -> io::Result<Option<Exit>> {
        read(&self.0.join("exit.json"))
    }

    /// Creates the file for the reason why the program could not be started.
    pub fn create_start_error(&self) -> io::Result<fs::File> {
        let mut options = private::options();
        let file = options.write(true).truncate(true);
        file.open(self.0.join("start-error"))
    }

    /// Returns why the program could not be started, if that was recorded.
    pub fn start_error(&self) -> Option<String> {
        let message = fs::read_to_string(self.0.join("start-error")).ok();
        message.filter(|message| !message.is_empty())
    }

    /// Reads the last bytes of the log.
    pub fn log_end(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut log = fs::File::open(self.0.join("log"))?;
        let length = log.metadata()?.len();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        log.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
        let mut end = Vec::new();
        log.take(limit).read_to_end(&mut end)?;
        Ok(end)
    }

    /// Opens the log file for appending.
    pub fn log(&self) -> io::Result<fs::File> {
        private::options().append(true).open(self.0.join("log"))
    }
}

/// Returns the working directory of the containers of a Pod, which other users may enter. No container has its name.
pub fn work_dir(pod: &Path) -> PathBuf {
    pod.join(WORK)
}

/// Reads a JSON file; returns `None` if it does not exist.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a JSON file atomically: to a temporary file that is then renamed.
pub fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let draft = path.with_extension("draft");
    private::write(&draft, &serde_json::to_vec(value)?)?;
    fs::rename(draft, path)
}
