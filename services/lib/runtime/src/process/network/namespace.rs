//! Network namespaces with names, as `ip netns` has them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::programs::run;

/// The directory of namespaces with names.
const DIRECTORY: &str = "/run/netns";

/// A network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Returns the one with this name, which may not exist.
    pub fn new(name: String) -> Self {
        Self { name }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }

    /// Returns whether it exists.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Moves this process, which must have a single thread, or this thread, to it.
    ///
    /// # Errors
    /// If it does not exist, or this process may not.
    pub fn enter(&self) -> io::Result<()> {
        let namespace = File::open(self.path())?;
        Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?)
    }

    /// Calls a function in a thread of the namespace, of its own since the thread cannot return. Sockets that it opens
    /// stay there.
    ///
    /// # Errors
    /// If it cannot be entered, and those of the function.
    pub async fn inside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, result) = oneshot::channel();
        let namespace = self.clone();
        std::thread::Builder::new()
            .name("namespace".to_owned())
            .spawn(move || {
                // The caller may have left.
                let _ = done.send(namespace.enter().and_then(|()| work()));
            })?;
        result
            .await
            .map_err(|_| io::Error::other("the thread has ended"))?
    }

    /// Removes it. Its links go with the last process in it.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub async fn remove(&self) -> io::Result<()> {
        match self.exists() {
            true => run(&["ip", "netns", "delete", &self.name], "").await,
            false => Ok(()),
        }
    }
}

/// Returns the namespaces whose names start with this.
pub fn all(prefix: &str) -> io::Result<Vec<Namespace>> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names = names.filter(|name| name.starts_with(prefix));
    Ok(names.map(Namespace::new).collect())
}
