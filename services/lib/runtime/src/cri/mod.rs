//! Containers of a runtime that serves the CRI, such as containerd and CRI-O, on machines that are nodes.
//!
//! ```text
//! PodSandbox  k8s labels of the Pod, setpoint.dev/node; annotation setpoint.dev/config
//! Container   the same, and its name; its log and the files that it mounts are the agent's (`files`)
//! ```
//! Labels and annotations identify what belongs to a node, so that a restarted agent adopts it. The state in memory is
//! a copy of the runtime's, updated by its events, or by listing where it sends none. Networks are the runtime's, by
//! CNI: a Pod has the address that its sandbox has.

mod abilities;
mod client;
mod cni;
mod create;
mod events;
mod exec;
mod exec_process;
mod files;
mod identity;
mod images;
mod launch;
mod log;
mod ports;
mod resources;
mod rotation;
mod sandboxes;
mod settings;
mod state;
mod stop;
mod streaming;
mod sweep;
mod usage;
mod user_ids;
mod watch;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use k8s_cri::v1::RemoveContainerRequest;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::core::{ContainerImage, ResourceRequirements};
use setpoint_task::supervise;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use self::client::{call, failed, is_not_found};
use self::cni::Cni;
use self::files::Files;
use self::images::RuntimeImages;
use self::user_ids::UserIds;
use super::cgroup::Cgroups;
use super::image_access::ImageAccess;
use super::image_pulls::Images;
use super::log_file;
use super::streams::dial;
use super::table::Table;
use super::{
    Connection, Container, ContainerConfig, ContainerId, DiskUsage, Error, Hosts, ImageOrigin,
    Inputs, Log, LogOptions, Obstacle, Outputs, PodResources, Reading, Runtime, Sandbox,
    SandboxConfig, State, Streams, Volume, Wake,
};

pub use self::client::{ConnectError, Features, Handler, Service};
pub use self::settings::{CgroupDriver, Network, Settings};
pub use self::sweep::sweep;
pub use super::image_access::Verification;

/// The directory of the records of images, in that of the state.
const IMAGE_RECORDS: &str = "image-records";

/// The cri runtime. Cheap to clone.
#[derive(Clone)]
pub struct Cri {
    shared: Arc<Shared>,
    _tasks: Arc<[AbortOnDropHandle<()>; 2]>,
}

struct Shared {
    service: Service,
    node: String,
    relist_period: Duration,
    wake: Wake,
    files: Files,
    /// The directory of the seccomp profiles of the node.
    seccomp_root: PathBuf,
    /// The cgroups of Pods, if the agent manages them.
    cgroups: Option<Cgroups>,
    images: Arc<Images<RuntimeImages>>,
    table: Mutex<Table>,
    /// The newest sandboxes, by Pod uid.
    sandboxes: Mutex<HashMap<String, Attempt>>,
    /// The Pods whose sandbox is being made, by uid.
    incomplete: Mutex<HashSet<String>>,
    /// The users and groups of Pods that have their own.
    user_ids: Mutex<UserIds>,
    /// The configurations of containers, without secrets.
    configs: Mutex<HashMap<ContainerId, ContainerConfig>>,
    /// The configuration of the network of Pods, if it is the agent's.
    cni: Option<Cni>,
    /// The reason why there is none yet.
    unconfigured: Mutex<Option<Obstacle>>,
    /// The reason why the runtime cannot start Pods.
    obstacle: Mutex<Option<Obstacle>>,
    /// Whether the runtime has answered that it sends no events.
    has_no_events: AtomicBool,
    /// Held while a command starts.
    exec_locks: exec_process::Locks,
}

/// An attempt at a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt {
    number: u32,
    /// The time at which it was made, in nanoseconds since the epoch.
    created_at: i64,
    /// The runtime's id.
    runtime_id: String,
}

impl Cri {
    /// Opens the runtime of a node, with the containers that exist already. Its files are in the directory `state`.
    /// `report` is told whether the task that follows the runtime is healthy, see [`supervise`].
    ///
    /// # Errors
    /// If the runtime does not list its containers, or the records of images cannot be read.
    pub async fn open(
        service: Service,
        settings: &Settings,
        node: &str,
        state: &Path,
        wake: Wake,
        report: impl Fn(Result<(), String>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        // The runtime has another working directory.
        let state = std::path::absolute(state).unwrap_or_else(|_| state.into());
        let images = RuntimeImages::new(service.clone());
        let records = state.join(IMAGE_RECORDS);
        let access = ImageAccess::open(settings.image_policy(), &records);
        let access = access.map_err(|source| state_error("the records of images", source))?;
        let cni = (settings.network == Network::Routes).then(|| Cni::new(settings, &state));
        let waits = || Obstacle::Network("the node has no range of addresses for Pods yet".into());
        let shared = Arc::new(Shared {
            cgroups: resources::cgroups(&service, node),
            images: Arc::new(Images::new(images, Arc::clone(&wake), Some(access))),
            service,
            node: node.to_owned(),
            relist_period: settings.relist_period,
            files: Files::new(&state, &settings.pod_logs_dir),
            seccomp_root: settings.seccomp_profile_root.clone(),
            wake,
            table: Mutex::default(),
            sandboxes: Mutex::default(),
            incomplete: Mutex::default(),
            user_ids: Mutex::default(),
            configs: Mutex::default(),
            unconfigured: Mutex::new(cni.as_ref().map(|_| waits())),
            cni,
            obstacle: Mutex::default(),
            has_no_events: AtomicBool::new(false),
            exec_locks: exec_process::Locks::default(),
        });
        if let Err(error) = shared.files.clean() {
            warn!(%error, "cannot unmount parts of volumes that an earlier agent has left");
        }
        shared.check().await;
        let listed = shared.relist(None).await;
        listed.map_err(failed("list the containers of this node"))?;
        shared.images.recover().await;
        let (watched, rotated) = (Arc::clone(&shared), Arc::clone(&shared));
        let watch = tokio::spawn(async move {
            supervise("runtime", report, || watched.watch()).await;
        });
        let rotate = tokio::spawn(async move {
            supervise("logs", |_| {}, || rotated.rotate_logs()).await;
        });
        Ok(Self {
            shared,
            _tasks: Arc::new([watch, rotate].map(AbortOnDropHandle::new)),
        })
    }
}

impl Runtime for Cri {
    const NAME: &'static str = "cri";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = true;

    async fn images(&self) -> Vec<ContainerImage> {
        self.shared.images.list().await
    }

    async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let in_use = self.shared.table.lock().images();
        let images = &self.shared.images;
        images.remove_unused(&in_use, bytes, min_age).await
    }

    async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        Shared::disk_usage(&self.shared, pods).await
    }

    async fn read_file(&self, uid: &str, volume: &str, path: &str) -> Result<Vec<u8>, Error> {
        let read = self.shared.files.volumes.read_file(uid, volume, path);
        read.map_err(|source| state_error(format!("volume {volume:?} of Pod {uid}"), source))
    }

    fn mounts_volumes(&self) -> bool {
        true
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
        let unconfigured = self.shared.unconfigured.lock().clone();
        let obstacle = unconfigured.or_else(|| self.shared.obstacle.lock().clone());
        obstacle.map_or(Ok(()), Err)
    }

    async fn set_pod_range(&self, range: &str) -> Result<(), Error> {
        let Some(cni) = &self.shared.cni else {
            return Ok(());
        };
        let written = cni.write(range);
        let obstacle = written.as_ref().err();
        *self.shared.unconfigured.lock() =
            obstacle.map(|error| Obstacle::Network(error.to_string()));
        written.map_err(|source| state_error("the configuration of the network", source))?;
        // What the runtime said before is not so any more.
        self.shared.check().await;
        Ok(())
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.run_pod_sandbox(config).await
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        for volume in &volumes {
            let published = self.shared.files.volumes.publish(uid, volume);
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
        let written = self.shared.files.write_hosts(&config);
        written.map_err(|source| state_error(format!("the hosts file of Pod {uid}"), source))
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        let new = {
            let mut table = self.shared.table.lock();
            table.insert(Container::starting(&config))?
        };
        if !new {
            return Ok(ImageOrigin::Present);
        }
        let launched = Box::pin(self.shared.launch(&config)).await;
        if launched.is_err() {
            self.shared.table.lock().discard(&config.id);
        }
        launched
    }

    async fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        crate::resize::resize(&*self.shared, id, resources).await
    }

    async fn resize_pod(&self, uid: &str, resources: PodResources) -> Result<bool, Error> {
        crate::resize::resize_pod(&*self.shared, uid, resources).await
    }

    fn bounds_pods(&self) -> bool {
        self.shared.cgroups.is_some()
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        Shared::stop(&self.shared, id, grace)
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        self.shared.table.lock().container(id)?;
        let sandbox = self.shared.sandbox_config(&id.uid);
        let sandbox = sandbox.ok_or_else(|| Error::Unknown(id.uid.clone()))?;
        let path = self.shared.files.log(&sandbox, id);
        let has_exited = Shared::has_exited(&self.shared, id);
        let (tail, follow) = (options.tail, options.follow);
        let log = log_file::read(&id.to_string(), path, tail, follow, has_exited)?;
        Ok(log::decoded(log, options))
    }

    async fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        Shared::exec(&self.shared, id, command, streams, input).await
    }

    async fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        self.shared.attach(id, streams, input).await
    }

    async fn connect(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        let ip = self.shared.table.lock().sandbox(uid)?.config.ip;
        dial(sandboxes::address(ip, port)?).await
    }

    async fn connect_loopback(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        self.shared.forward_port(uid, port).await
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        self.shared.readings().await
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        let removable = self.shared.table.lock().removable(id)?;
        let Some(container) = removable else {
            return Ok(());
        };
        self.shared.destroy(&container.runtime_id).await?;
        if let Some(sandbox) = self.shared.sandbox_config(&id.uid) {
            let removed = self.shared.files.remove_container(&sandbox, id);
            removed.map_err(|source| state_error(id, source))?;
        }
        self.shared.configs.lock().remove(id);
        self.shared.table.lock().remove(id)
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        self.shared.remove_pod(uid).await
    }
}

impl Shared {
    /// Returns the configuration of the sandbox of a Pod.
    fn sandbox_config(&self, uid: &str) -> Option<SandboxConfig> {
        let mut table = self.table.lock();
        table.sandbox(uid).ok().map(|found| found.config.clone())
    }

    /// Returns a function that tells whether a container has exited.
    fn has_exited(this: &Arc<Self>, id: &ContainerId) -> impl Fn() -> bool + Send + Sync + 'static {
        let (this, id) = (Arc::clone(this), id.clone());
        move || {
            let mut table = this.table.lock();
            let found = table.container(&id);
            found.map_or(true, |found| matches!(found.state, State::Exited(_)))
        }
    }

    /// Removes a container, even if it is running.
    async fn destroy(&self, runtime_id: &str) -> Result<(), Error> {
        if runtime_id.is_empty() {
            return Ok(());
        }
        let request = RemoveContainerRequest {
            container_id: runtime_id.to_owned(),
        };
        match call(self.service.runtime().remove_container(request)).await {
            Err(status) if is_not_found(&status) => Ok(()),
            removed => removed
                .map(drop)
                .map_err(failed(format!("remove container {runtime_id}"))),
        }
    }
}

fn state_error(what: impl ToString, source: std::io::Error) -> Error {
    let what = what.to_string();
    Error::State { what, source }
}
