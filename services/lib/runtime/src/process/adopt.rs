//! Attaches the agent to shims: of a container just started, or of all containers when the agent restarts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_host::private;
use setpoint_task::supervise;
use tokio::process::Child;
use tracing::{info, warn};

use super::folder::{self, Folder};
use super::process_handle::{Process, ProcessHandle, kill_marked};
use super::{Processes, SHIM_START, network, remove_dir};
use crate::{Container, ContainerId, Exit, SandboxConfig};

/// Polling interval for the start of a container whose shim was found while starting.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Exit code of a process killed by SIGKILL.
const KILLED: i32 = 137;

impl Processes {
    /// Restores all sandboxes from the state directory. Removes directories that were created or removed only in part.
    pub(super) fn adopt_all(&self) -> io::Result<()> {
        private::create_dir_all(&self.shared.pods)?;
        for pod in fs::read_dir(&self.shared.pods)? {
            let pod = pod?.path();
            match folder::read::<SandboxConfig>(&pod.join("sandbox.json"))? {
                Some(config) => self.adopt_sandbox(&pod, config)?,
                None => remove_dir(&pod)?,
            }
        }
        let known = |uid: &str| self.shared.table.lock().key(uid).is_some();
        self.shared.volumes.remove_others(known)
    }

    fn adopt_sandbox(&self, path: &Path, config: SandboxConfig) -> io::Result<()> {
        info!(pod = %config.pod(), uid = %config.uid, "adopted");
        private::create_dir_all(path)?;
        fs::create_dir_all(folder::work_dir(path))?;
        let boot_id = folder::read::<String>(&path.join("boot.json"))?;
        let connected = self.is_connected(path, &config)?;
        self.add_adopted(
            config,
            boot_id.unwrap_or_else(|| self.shared.boot_id.clone()),
            connected,
        );
        for folder in containers(path)? {
            let Ok(config) = folder.config() else {
                remove_dir(folder.path())?;
                continue;
            };
            let container = Container::starting(&config);
            // Cannot fail: the sandbox was added above.
            let _ = self.shared.table.lock().insert(container);
            self.adopt(&config.id, &folder, None)?;
        }
        Ok(())
    }

    /// Returns whether a Pod still has the network that it is to have.
    fn is_connected(&self, path: &Path, config: &SandboxConfig) -> io::Result<bool> {
        let namespace = network::of_pod(path)?;
        let wanted = self.shared.network.is_some() && !config.host_network;
        Ok(match namespace {
            Some(namespace) => wanted && namespace.exists(),
            None => !wanted,
        })
    }

    fn add_adopted(&self, config: SandboxConfig, boot_id: String, connected: bool) {
        let (uid, mut table) = (config.uid.clone(), self.shared.table.lock());
        table.add(config);
        if boot_id != self.shared.boot_id || !connected {
            table.set_lost(&uid);
        }
        table.set_sandbox_id(&uid, boot_id);
    }

    /// Updates a container's state from its files and supervises its shim from now on.
    pub(super) fn adopt(
        &self,
        id: &ContainerId,
        folder: &Folder,
        child: Option<Child>,
    ) -> io::Result<()> {
        let handle = match folder.shim()? {
            Some(shim) => shim.open()?,
            None => {
                self.abandon_start(id, folder);
                return Ok(());
            }
        };
        let Some(handle) = handle.map(Arc::new) else {
            self.record_exit(id, folder);
            return Ok(());
        };
        self.shared
            .shims
            .lock()
            .insert(id.clone(), Arc::clone(&handle));
        if let Some(started) = folder.started()? {
            self.shared.table.lock().set_running(id, started.at);
        }
        let (this, id, folder) = (self.clone(), id.clone(), folder.clone());
        let mut child = child;
        tokio::spawn(async move {
            let watch = || this.watch(&id, &folder, &handle, child.take());
            supervise("container", |_| {}, watch).await;
        });
        Ok(())
    }

    async fn watch(
        &self,
        id: &ContainerId,
        folder: &Folder,
        handle: &ProcessHandle,
        child: Option<Child>,
    ) {
        if matches!(folder.started(), Ok(None)) {
            self.await_start(id, folder, handle).await;
        }
        handle.gone().await;
        if let Some(mut child) = child {
            let _ = child.wait().await;
        }
        self.record_exit(id, folder);
    }

    /// Waits until the shim has recorded the start of its container, or has ended.
    async fn await_start(&self, id: &ContainerId, folder: &Folder, handle: &ProcessHandle) {
        let started = async {
            loop {
                if let Ok(Some(started)) = folder.started() {
                    return started;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            () = handle.gone() => {}
            started = tokio::time::timeout(SHIM_START, started) => if let Ok(started) = started {
                self.shared.table.lock().set_running(id, started.at);
                self.wake(id);
            }
        }
    }

    /// Records the end of a container whose shim has ended.
    fn record_exit(&self, id: &ContainerId, folder: &Folder) {
        let exit = match folder.exit() {
            Ok(Some(exit)) => exit,
            _ => lost_shim_exit(id, folder),
        };
        self.set_exited(id, exit);
    }

    /// Marks the start as failed and claims the container's directory, so that a late shim cannot start it. If a shim
    /// was faster, adopts it.
    pub(super) fn abandon_start(&self, id: &ContainerId, folder: &Folder) {
        match folder.claim(&Process::NONE) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Err(error) = self.adopt(id, folder, None) {
                    warn!(container = %id, %error, "cannot adopt the container");
                }
            }
            _ => {
                let now = Timestamp::now();
                let exit = Exit::new(128, now, now).because("StartError", "the shim did not start");
                persist_exit(id, folder, &exit);
                self.set_exited(id, exit);
            }
        }
    }

    fn set_exited(&self, id: &ContainerId, exit: Exit) {
        self.shared.shims.lock().remove(id);
        let pod = self.shared.table.lock().set_exited(id, exit);
        if let Some(pod) = pod {
            (self.shared.wake)(&pod);
        }
    }

    fn wake(&self, id: &ContainerId) {
        let pod = self.shared.table.lock().key(&id.uid);
        if let Some(pod) = pod {
            (self.shared.wake)(&pod);
        }
    }
}

/// Returns the end of a container whose shim ended without recording one, for example because it was killed. Kills the
/// container's remaining processes, which nothing supervises any more.
fn lost_shim_exit(id: &ContainerId, folder: &Folder) -> Exit {
    let now = Timestamp::now();
    let started = folder.started().ok().flatten();
    let began = started.as_ref().map_or(now, |started| started.at);
    kill_marked(id);
    let message = "The container could not be located: its shim is gone";
    let exit = Exit::new(KILLED, began, now).because("ContainerStatusUnknown", message);
    persist_exit(id, folder, &exit);
    exit
}

fn persist_exit(id: &ContainerId, folder: &Folder, exit: &Exit) {
    if let Err(error) = folder.write_exit(exit) {
        warn!(container = %id, %error, "cannot record the end of the container");
    }
}

/// Returns the directories of all attempts in a sandbox.
pub(super) fn containers(sandbox: &Path) -> io::Result<Vec<Folder>> {
    let mut folders = Vec::new();
    let is_container = |path: &PathBuf| path.file_name().is_some_and(|name| name != folder::WORK);
    for container in subfolders(sandbox)?.into_iter().filter(is_container) {
        folders.extend(subfolders(&container)?.into_iter().map(Folder::new));
    }
    Ok(folders)
}

pub(super) fn subfolders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir()).collect())
}
