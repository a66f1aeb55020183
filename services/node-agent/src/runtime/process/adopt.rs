//! Taking hold of containers: of one just started, or of all that an earlier agent left behind.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_task::supervise;
use tokio::process::Child;
use tracing::{info, warn};

use super::folder::{self, Folder};
use super::hold::{Hold, Process, kill_marked};
use super::{Processes, SHIM_START, vanish};
use crate::runtime::{Container, ContainerId, Exit, SandboxConfig};

/// How often a shim that had no time to say so is asked whether its container runs.
const ASK: Duration = Duration::from_millis(20);
/// The exit code of a process that was killed.
const KILLED: i32 = 137;

impl Processes {
    /// Reads every sandbox that the files speak of. A folder that was never finished, or half removed, goes.
    pub(super) fn adopt_all(&self) -> io::Result<()> {
        fs::create_dir_all(&self.shared.pods)?;
        for pod in fs::read_dir(&self.shared.pods)? {
            let pod = pod?.path();
            match folder::read::<SandboxConfig>(&pod.join("sandbox.json"))? {
                Some(config) => self.adopt_sandbox(&pod, config)?,
                None => vanish(&pod)?,
            }
        }
        Ok(())
    }

    fn adopt_sandbox(&self, path: &Path, config: SandboxConfig) -> io::Result<()> {
        info!(pod = %config.pod(), uid = %config.uid, "adopted");
        self.shared.table.lock().add(config);
        for folder in containers(path)? {
            let Ok(config) = folder.config() else {
                vanish(folder.path())?;
                continue;
            };
            let container = Container::starting(&config);
            // Its sandbox is there: it was added above.
            let _ = self.shared.table.lock().insert(container);
            self.adopt(&config.id, &folder, None)?;
        }
        Ok(())
    }

    /// Brings the memory of a container up to its files, and watches over its shim from now on.
    pub(super) fn adopt(
        &self,
        id: &ContainerId,
        folder: &Folder,
        child: Option<Child>,
    ) -> io::Result<()> {
        let hold = match folder.shim()? {
            Some(shim) => shim.hold()?,
            None => {
                self.give_up(id, folder);
                return Ok(());
            }
        };
        let Some(hold) = hold.map(Arc::new) else {
            self.conclude(id, folder);
            return Ok(());
        };
        self.shared
            .shims
            .lock()
            .insert(id.clone(), Arc::clone(&hold));
        if let Some(started) = folder.started()? {
            self.shared.table.lock().started(id, started.at);
        }
        let (this, id, folder) = (self.clone(), id.clone(), folder.clone());
        let mut child = child;
        tokio::spawn(async move {
            let watch = || this.watch(&id, &folder, &hold, child.take());
            supervise("container", |_| {}, watch).await;
        });
        Ok(())
    }

    async fn watch(&self, id: &ContainerId, folder: &Folder, hold: &Hold, child: Option<Child>) {
        if matches!(folder.started(), Ok(None)) {
            self.await_start(id, folder, hold).await;
        }
        hold.gone().await;
        if let Some(mut child) = child {
            let _ = child.wait().await;
        }
        self.conclude(id, folder);
    }

    /// A shim met between its claim and its report will write down one or the other soon.
    async fn await_start(&self, id: &ContainerId, folder: &Folder, hold: &Hold) {
        let started = async {
            loop {
                if let Ok(Some(started)) = folder.started() {
                    return started;
                }
                tokio::time::sleep(ASK).await;
            }
        };
        tokio::select! {
            () = hold.gone() => {}
            started = tokio::time::timeout(SHIM_START, started) => if let Ok(started) = started {
                self.shared.table.lock().started(id, started.at);
                self.wake(id);
            }
        }
    }

    /// The shim is gone: notes how the container ended.
    fn conclude(&self, id: &ContainerId, folder: &Folder) {
        let exit = match folder.exit() {
            Ok(Some(exit)) => exit,
            _ => bury(id, folder),
        };
        self.end(id, exit);
    }

    /// There is no shim, and there shall be none. One that was faster is taken hold of.
    pub(super) fn give_up(&self, id: &ContainerId, folder: &Folder) {
        match folder.claim(&Process::NONE) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Err(error) = self.adopt(id, folder, None) {
                    warn!(container = %id, %error, "cannot take hold of it");
                }
            }
            _ => {
                let now = Timestamp::now();
                let exit = Exit::new(128, now, now).because("StartError", "its shim did not start");
                keep(id, folder, &exit);
                self.end(id, exit);
            }
        }
    }

    fn end(&self, id: &ContainerId, exit: Exit) {
        self.shared.shims.lock().remove(id);
        let pod = self.shared.table.lock().exited(id, exit);
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

/// The shim went without a word, as if killed: nobody watches over what it left, so that is killed too.
fn bury(id: &ContainerId, folder: &Folder) -> Exit {
    let now = Timestamp::now();
    let started = folder.started().ok().flatten();
    let began = started.as_ref().map_or(now, |started| started.at);
    kill_marked(id);
    let message = "The container could not be located: the process that watched over it is gone";
    let exit = Exit::new(KILLED, began, now).because("ContainerStatusUnknown", message);
    keep(id, folder, &exit);
    exit
}

fn keep(id: &ContainerId, folder: &Folder, exit: &Exit) {
    if let Err(error) = folder.write_exit(exit) {
        warn!(container = %id, %error, "cannot note how it ended");
    }
}

/// The folders of all attempts at all containers of a sandbox.
pub(super) fn containers(sandbox: &Path) -> io::Result<Vec<Folder>> {
    let mut folders = Vec::new();
    for container in subfolders(sandbox)? {
        folders.extend(subfolders(&container)?.into_iter().map(Folder::new));
    }
    Ok(folders)
}

pub(super) fn subfolders(path: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir()).collect())
}
