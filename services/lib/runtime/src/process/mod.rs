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
pub(super) mod shim;
mod surroundings;
mod sweep;
mod terminal;
mod usage;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rustix::process::Signal;
use setpoint_host::private;
use setpoint_model::Key;
use setpoint_model::time::after;
use setpoint_proto::core::ResourceRequirements;
use setpoint_task::catch_panic;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tracing::warn;

use self::connect::dial_within;
use self::folder::Folder;
use self::process_handle::ProcessHandle;
use super::bind::Bind;
use super::log_file;
use super::streams::dial;
use super::table::Table;
use super::volumes::{Volumes, remove_dir};
use super::{
    Connection, Container, ContainerConfig, ContainerId, DiskUsage, Error, Hosts, ImageOrigin,
    Inputs, Log, LogOptions, Obstacle, Outputs, Reading, Runtime, Sandbox, SandboxConfig, State,
    Streams, Volume, Wake, pod_label,
};

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

impl Runtime for Processes {
    const NAME: &'static str = "process";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = false;

    async fn read_file(&self, uid: &str, volume: &str, path: &str) -> Result<Vec<u8>, Error> {
        let read = self.shared.volumes.read_file(uid, volume, path);
        read.map_err(|source| state_error(format!("volume {volume:?} of Pod {uid}"), source))
    }

    fn mounts_volumes(&self) -> bool {
        self.shared.mounts
    }

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.shared.table.lock().sandboxes_of(pod)
    }

    fn state(&self, id: &ContainerId) -> Option<State> {
        self.shared.table.lock().state(id)
    }

    fn pods(&self) -> Vec<Key> {
        self.shared.table.lock().pods()
    }

    fn network_ready(&self) -> Result<(), Obstacle> {
        let network = self.shared.network.as_ref();
        let ready = network.map_or(Ok(()), Network::ready);
        ready.map_err(Obstacle::Network)
    }

    fn has_pod_networks(&self) -> bool {
        self.shared.network.is_some()
    }

    async fn set_pod_range(&self, range: &str) -> Result<(), Error> {
        self.make_network(range).await
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        let folder = self.sandbox_folder(&config.uid);
        private::create_dir_all(&folder)
            .and_then(|()| fs::create_dir_all(folder::work_dir(&folder)))
            .and_then(|()| self.shared.volumes.create(&config.uid, &config.volumes))
            .and_then(|()| self.write_hosts(&config))
            .and_then(|()| folder::write(&folder.join("boot.json"), &self.shared.boot_id))
            .and_then(|()| folder::write(&folder.join("sandbox.json"), &config))
            .map_err(|source| state_error(&config.uid, source))?;
        self.connect_to_network(&config).await?;
        let (uid, ip) = (config.uid.clone(), config.ip);
        let mut table = self.shared.table.lock();
        table.add(config);
        table.set_sandbox_id(&uid, self.shared.boot_id.clone());
        table.set_ready(&uid, Some(ip));
        Ok(())
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        for volume in &volumes {
            let published = self.shared.volumes.publish(uid, volume);
            let what = || format!("volume {:?} of Pod {uid}", volume.name);
            published.map_err(|source| state_error(what(), source))?;
        }
        Ok(())
    }

    async fn update_hosts(&self, uid: &str, hostname: &str, hosts: &Hosts) -> Result<(), Error> {
        let config = self.shared.table.lock().sandbox(uid)?.config.clone();
        let config = SandboxConfig {
            hostname: hostname.to_owned(),
            hosts: hosts.clone(),
            ..config
        };
        let written = self.write_hosts(&config);
        written.map_err(|source| state_error(format!("the hosts file of Pod {uid}"), source))
    }

    fn unmounted_folder(&self, uid: &str, volume: &str) -> Option<PathBuf> {
        let folder = || self.shared.volumes.folder(uid, volume);
        (!self.shared.mounts).then(folder).flatten()
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        self.verify(&config)?;
        let binds = self.binds(&config)?;
        let new = self
            .shared
            .table
            .lock()
            .insert(Container::starting(&config))?;
        if !new {
            return Ok(ImageOrigin::Unused);
        }
        let (id, folder) = (&config.id, self.folder(&config.id));
        if let Err(source) = folder.create(&config, &binds) {
            return Err(self.not_created(id, &folder, source));
        }
        match self.launch(&folder, &config).await {
            Ok(Some(shim)) => self
                .adopt(id, &folder, Some(shim))
                .map(|()| ImageOrigin::Unused)
                .map_err(|source| state_error(id, source)),
            failed => {
                // Claims the directory in place of the shim, so that a late shim cannot start a container that counts
                // as failed.
                self.abandon_start(id, &folder);
                failed.map_err(|source| state_error(id, source))?;
                Err(Error::Shim(id.to_string()))
            }
        }
    }

    /// Records the requests and limits; the process has no limits.
    async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        self.shared.table.lock().set_resources(id, resources)?;
        let recorded = self.folder(id).set_resources(resources);
        recorded.map_err(|source| state_error(id, source))
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        let deadline = after(Timestamp::now(), grace);
        let Some(first) = self.set_stop_deadline(id, deadline)? else {
            return Ok(());
        };
        let Some(shim) = self.shared.shims.lock().get(id).cloned() else {
            return Ok(());
        };
        if first {
            shim.signal(Signal::TERM);
        }
        if grace.is_zero() {
            shim.signal(Signal::USR1);
            return Ok(());
        }
        tokio::spawn(catch_panic("stop", async move {
            if timeout(grace, shim.gone()).await.is_err() {
                shim.signal(Signal::USR1);
            }
        }));
        Ok(())
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        self.shared.table.lock().container(id)?;
        if options.timestamps || options.since.is_some() {
            let message = "the process runtime does not record timestamps of log lines";
            return Err(Error::Unsupported(message.to_owned()));
        }
        let path = self.folder(id).path().join("log");
        let (tail, follow) = (options.tail, options.follow);
        log_file::read(&id.to_string(), path, tail, follow, self.has_exited(id))
    }

    async fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.run_command(id, command, streams, input)
    }

    async fn attach(&self, id: &ContainerId, _: Streams, _: Inputs) -> Result<Outputs, Error> {
        self.follow_output(id)
    }

    async fn connect(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        let ip = self.shared.table.lock().sandbox(uid)?.config.ip;
        dial((ip, port).into()).await
    }

    async fn connect_loopback(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        match self.namespace_of(uid)? {
            Some(namespace) => dial_within(&namespace, port).await,
            None => self.connect(uid, port).await,
        }
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        let running = self.shared.shims.lock().keys().cloned().collect();
        let read = tokio::task::spawn_blocking(|| usage::readings(running));
        read.await.unwrap_or_default()
    }

    async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        let shared = Arc::clone(&self.shared);
        let read = tokio::task::spawn_blocking(move || {
            let containers = shared.table.lock().containers();
            let ids = containers.into_iter().map(|container| container.id);
            let ids = ids.filter(|id| pods.contains(&id.uid)).collect();
            usage::disk_usage(&shared.pods, &shared.volumes, ids)
        });
        read.await.unwrap_or_default()
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        self.shared.table.lock().remove(id)?;
        remove_dir(self.folder(id).path()).map_err(|source| state_error(id, source))
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        let config = self.shared.table.lock().removable_sandbox(uid)?;
        if let Some(config) = config {
            self.disconnect(&config).await?;
        }
        self.shared.table.lock().remove_sandbox(uid)?;
        let removed = self.shared.volumes.remove(uid);
        removed.map_err(|source| state_error(uid, source))?;
        remove_dir(&self.sandbox_folder(uid)).map_err(|source| state_error(uid, source))
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
