//! Containers as processes of this machine, without engine or images, each with a shim.
//!
//! ```text
//! <state>/pods/<uid>/sandbox.json, boot.json           the Pod, and the boot of the machine that it was set up in
//! <state>/pods/<uid>/network.json                      the network namespace of the Pod, if it has one
//! <state>/pods/<uid>/etc-hosts, resolv.conf            the files of containers with mounts
//! <state>/pods/<uid>/.work/                            the working directory of containers that name none
//! <state>/pods/<uid>/<container>/<attempt>/            config.json mounts.json shim.json started.json exit.json pid log log.1 …
//! ```
//! The state in memory is a copy of these files. A restarted agent reads them and adopts the shims that still run.
//! Only the agent's user may enter these directories, and no file in them has a secret.
//! Nothing is started twice, because only one shim can claim a container's directory.

mod adopt;
pub(super) mod confine;
mod connect;
mod exec;
pub(super) mod exec_shim;
mod folder;
mod handover;
mod hosts;
mod mounts;
mod network;
pub(crate) mod process_handle;
mod resolv_conf;
mod rotation;
mod runtime;
pub(super) mod shim;
mod surroundings;
mod sweep;
mod terminal;
mod usage;

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_host::private;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tracing::warn;

use self::folder::Folder;
use self::process_handle::ProcessHandle;
use super::bind::Bind;
use super::table::Table;
use super::volumes::{Volumes, remove_dir};
use super::{ContainerConfig, ContainerId, Error, State, Wake, pod_label};

pub use self::network::{Network, Settings};
pub use self::sweep::sweep;

/// The kernel's id of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Maximum time for a shim to start its container. It usually takes milliseconds.
const SHIM_START: Duration = Duration::from_secs(10);

/// The process runtime. Cheap to clone.
#[derive(Clone)]
pub struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    pods: PathBuf,
    program: PathBuf,
    /// The machine's boot id. A sandbox of an earlier boot is lost, with its volumes in memory.
    boot_id: String,
    /// Whether this agent may mount volumes.
    mounts: bool,
    volumes: Volumes,
    /// The network of Pods; `None` if they share that of the machine.
    network: Option<Network>,
    /// Held while the runtime exists, because two agents must not manage the same containers.
    _lock: File,
    wake: Wake,
    table: Mutex<Table>,
    shims: Mutex<HashMap<ContainerId, Arc<ProcessHandle>>>,
}

impl Processes {
    /// Opens the runtime with its state in the directory `state`, and adopts existing containers. `program` is the
    /// binary of the shims, `network` that of Pods unless they share that of the machine.
    ///
    /// # Errors
    /// If the files cannot be read, or another agent holds their lock.
    pub fn open(
        state: &Path,
        program: impl Into<PathBuf>,
        network: Option<Network>,
        wake: Wake,
    ) -> Result<Self, Error> {
        let lock = lock(state).map_err(|source| state_error(state.display(), source))?;
        // A shim has another working directory than the agent, so paths must be absolute.
        let root = std::path::absolute(state).unwrap_or_else(|_| state.into());
        let this = Self {
            shared: Arc::new(Shared {
                pods: root.join("pods"),
                boot_id: boot_id(),
                mounts: nix::unistd::Uid::effective().is_root() && mounts::are_possible(),
                volumes: Volumes::of(&root),
                network,
                program: program.into(),
                _lock: lock,
                wake,
                table: Mutex::default(),
                shims: Mutex::default(),
            }),
        };
        this.adopt_all()
            .map_err(|source| state_error(state.display(), source))?;
        Ok(this)
    }

    fn sandbox_folder(&self, uid: &str) -> PathBuf {
        self.shared.pods.join(uid)
    }

    fn folder(&self, id: &ContainerId) -> Folder {
        let name = self.sandbox_folder(&id.uid).join(&id.name);
        Folder::new(name.join(id.attempt.to_string()))
    }

    /// Refuses a container that would be less confined than requested.
    fn verify(&self, config: &ContainerConfig) -> Result<(), Error> {
        let (security, id) = (&config.security, &config.id);
        let pod = self.shared.table.lock().key(&id.uid).unwrap_or_default();
        let own = nix::unistd::Uid::effective().to_string();
        let verified = security.verify_non_root(&own, &pod_label(&pod, &id.uid), &id.name);
        verified.map_err(Error::Config)?;
        confine::unsupported_identity(security)
            .map_or(Ok(()), |message| Err(Error::Config(message)))
    }

    /// Returns the mounts of a container.
    fn binds(&self, config: &ContainerConfig) -> Result<Vec<Bind>, Error> {
        // A placeholder reads no files.
        if config.line().is_empty() {
            return Ok(Vec::new());
        }
        let mut binds = self.shared.volumes.binds(config);
        binds.extend(self.hosts_bind(config));
        binds.extend(self.resolv_conf_bind(config)?);
        let checked = |bind: &&Bind| bind.host.is_some() || !bind.sub_path.is_empty();
        for bind in binds.iter().filter(checked) {
            let opened = bind.open();
            opened.map_err(|error| Error::Config(bind.refused(&config.id.name, &error)))?;
        }
        Ok(binds)
    }

    /// Returns a function that tells whether a container has exited.
    fn has_exited(&self, id: &ContainerId) -> impl Fn() -> bool + Send + Sync + 'static {
        let (this, id) = (self.clone(), id.clone());
        move || {
            let mut table = this.shared.table.lock();
            let found = table.container(&id);
            found.map_or(true, |found| matches!(found.state, State::Exited(_)))
        }
    }

    /// Removes what was created of a container, so that the same attempt can be made again.
    fn not_created(&self, id: &ContainerId, folder: &Folder, source: io::Error) -> Error {
        self.shared.table.lock().discard(id);
        if let Err(error) = remove_dir(folder.path()) {
            warn!(container = %id, %error, "cannot remove the directory of a container that was not created");
        }
        state_error(id, source)
    }

    /// Starts the shim and waits until it has started the container or failed; `None` if it did not in time.
    async fn launch(
        &self,
        folder: &Folder,
        config: &ContainerConfig,
    ) -> Result<Option<Child>, io::Error> {
        let mut shim = Command::new(&self.shared.program)
            .arg("shim")
            .arg(folder.path())
            .env_clear()
            .stdin(handover::stdin_of_shim(config)?)
            .stdout(Stdio::piped())
            .stderr(folder.log()?)
            .spawn()?;
        let Some(mut stdout) = shim.stdout.take() else {
            return Ok(Some(shim));
        };
        match timeout(SHIM_START, stdout.read(&mut [0])).await {
            Ok(read) => read.map(|_| Some(shim)),
            Err(_) => Ok(None),
        }
    }

    /// Sets the deadline of a stop. Returns whether it is the first stop of this container, or `None` if it has exited
    /// or an earlier deadline exists.
    fn set_stop_deadline(
        &self,
        id: &ContainerId,
        deadline: Timestamp,
    ) -> Result<Option<bool>, Error> {
        let mut table = self.shared.table.lock();
        Ok(match &mut table.container(id)?.state {
            State::Exited(_) => None,
            State::Starting => Some(true),
            State::Running {
                stopping: Some(sooner),
                ..
            } if *sooner <= deadline => None,
            State::Running { stopping, .. } => Some(stopping.replace(deadline).is_none()),
        })
    }
}

fn lock(state: &Path) -> io::Result<File> {
    private::create_dir_all(state)?;
    let lock = private::options().write(true).open(state.join("lock"))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("locked by another agent"),
        TryLockError::Error(error) => error,
    })?;
    Ok(lock)
}

/// Returns the id of this boot of the machine; empty if it is not known.
fn boot_id() -> String {
    let id = fs::read_to_string(BOOT_ID).unwrap_or_default();
    id.trim().to_owned()
}

fn state_error(what: impl ToString, source: io::Error) -> Error {
    let what = what.to_string();
    Error::State { what, source }
}
