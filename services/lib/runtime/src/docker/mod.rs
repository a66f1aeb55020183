//! Containers of a Docker engine.
//!
//! ```text
//! k8s_POD_<pod>_<namespace>_<uid>_<attempt>           the pause container: holds the Pod's address, namespaces and volumes
//! k8s_<container>_<pod>_<namespace>_<uid>_<attempt>   shares them
//! k8s_files_<uid>                                     never runs: the agent fills the volumes through it
//! k8s_port_<cluster>_<tcp|udp>_<port>                 forwards a port of the engine's machine to Services
//! ```
//! Labels identify the Pod. The state in memory is a copy of the engine's, updated by its events. A restarted agent
//! lists the containers and starts nothing twice, because container names are unique.

mod carrier;
mod create;
mod creation;
pub(super) mod disk;
mod engine;
mod exec;
pub(super) mod forward;
pub(super) mod helper;
mod hosts;
mod identity;
mod image;
mod image_files;
mod image_volume;
mod lifecycle;
mod pod_cgroup;
mod published;
mod refresh;
mod resize;
mod resolv_conf;
mod settings;
mod state;
mod stop;
mod sub_path;
mod sweep;
mod termination;
mod usage;
mod volume;
mod watch;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::query_parameters::{LogsOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::core::{ContainerImage, ResourceRequirements};
use setpoint_task::supervise;
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use self::image_volume::ImageVolumes;
use super::image_pulls::Images;
use super::image_records::familiar;
use super::streams::dial;
use super::table::Table;
use super::{
    Connection, Container, ContainerConfig, ContainerId, DiskUsage, Error, Hosts, ImageOrigin,
    Inputs, Log, LogOptions, Outputs, PodResources, Reading, Runtime, Sandbox, SandboxConfig,
    State, Streams, Volume, Wake,
};

pub use self::engine::{ConnectError, Engine};
pub use self::published::{Forward, Forwarder};
pub use self::settings::{Fallback, Published, Settings};
pub use self::sweep::{own_cluster, sweep};

/// The docker runtime. Cheap to clone.
#[derive(Clone)]
pub struct Docker {
    shared: Arc<Shared>,
    _watch: Arc<AbortOnDropHandle<()>>,
}

struct Shared {
    engine: Engine,
    node: String,
    pause_image: String,
    wake: Wake,
    images: Arc<Images<bollard::Docker>>,
    image_volumes: ImageVolumes,
    table: Mutex<Table>,
    /// The newest pause containers, by Pod uid.
    pauses: Mutex<HashMap<String, Pause>>,
    /// The Pods whose sandbox is not complete, by uid, with the pause container that it replaces. It runs before its
    /// volumes are filled, so that it is not ready once it runs.
    incomplete: Mutex<HashMap<String, Option<Pause>>>,
    /// Set once pause containers have the agent's binary.
    helper: OnceCell<()>,
    /// Whether the engine's cgroups turned out to be those of another machine.
    foreign_cgroups: AtomicBool,
}

/// An attempt at a pause container.
#[derive(Clone, Debug)]
struct Pause {
    /// The engine's id.
    runtime_id: String,
    attempt: u32,
}

impl Docker {
    /// Opens the runtime of a node, with the containers that exist already. `report` is told whether the task that
    /// follows the engine is healthy, see [`supervise`].
    ///
    /// # Errors
    /// If the engine does not list its containers.
    pub async fn open(
        engine: Engine,
        settings: &Settings,
        node: &str,
        wake: Wake,
        report: impl Fn(Result<(), String>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            node: node.to_owned(),
            pause_image: settings.pause_image.clone(),
            images: Arc::new(Images::new(engine.client.clone(), Arc::clone(&wake), None)),
            image_volumes: ImageVolumes::new(settings.image_volume_max_bytes()),
            engine,
            wake,
            table: Mutex::default(),
            pauses: Mutex::default(),
            incomplete: Mutex::default(),
            helper: OnceCell::new(),
            foreign_cgroups: AtomicBool::new(false),
        });
        if let Err(error) = shared.clean_sub_paths() {
            warn!(%error, "cannot unmount parts of volumes that an earlier agent has left");
        }
        let cleaned = shared.clean_image_volumes().await;
        cleaned.map_err(|error| engine_error("list the image volumes of this node", error))?;
        let listed = shared.relist().await;
        listed.map_err(|error| engine_error("list the containers of this node", error))?;
        let watch = Arc::clone(&shared);
        let watch = tokio::spawn(async move {
            supervise("engine", report, || watch.watch()).await;
        });
        Ok(Self {
            shared,
            _watch: Arc::new(AbortOnDropHandle::new(watch)),
        })
    }
}

impl Runtime for Docker {
    const NAME: &'static str = "docker";
    const RUNS_COMMANDS: bool = true;
    const RUNS_IMAGES: bool = true;

    async fn images(&self) -> Vec<ContainerImage> {
        self.shared.images.list().await
    }

    async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let mut in_use = self.shared.table.lock().images();
        in_use.insert(familiar(&self.shared.pause_image));
        let images = &self.shared.images;
        images.remove_unused(&in_use, bytes, min_age).await
    }

    async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        self.shared.disk_usage(pods).await
    }

    /// The engine resolves links within the pause container.
    async fn read_file(&self, uid: &str, volume: &str, path: &str) -> Result<Vec<u8>, Error> {
        let pause = self.shared.pauses.lock().get(uid).cloned();
        let pause = pause.ok_or_else(|| Error::Unknown(uid.to_owned()))?;
        let path = format!("{}/{}", volume::path(volume), path.trim_start_matches('/'));
        let read = self.shared.read_file(&pause.runtime_id, &path).await;
        read.map_err(|error| engine_error(format!("read {path}"), error))
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

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.run_pod_sandbox(config).await
    }

    async fn update_volumes(&self, uid: &str, volumes: Vec<Volume>) -> Result<(), Error> {
        self.shared.update_volumes(uid, volumes).await
    }

    async fn update_hosts(&self, uid: &str, hostname: &str, hosts: &Hosts) -> Result<(), Error> {
        self.shared.update_hosts(uid, hostname, hosts).await
    }

    async fn start(&self, config: ContainerConfig) -> Result<ImageOrigin, Error> {
        let new = {
            let mut table = self.shared.table.lock();
            table.insert(Container::starting(&config))?
        };
        if !new {
            return Ok(ImageOrigin::Present);
        }
        let launched = Box::pin(Shared::launch(&self.shared, config.clone())).await;
        match &launched {
            Ok((container, _)) => self.shared.update(container).await,
            Err(_) => self.shared.table.lock().discard(&config.id),
        }
        launched.map(|(_, origin)| origin)
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
        self.shared.cgroups().is_some()
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        Shared::stop(&self.shared, id, grace).await
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        let runtime_id = self.shared.table.lock().container(id)?.runtime_id.clone();
        Ok(read_log(&self.shared.engine, runtime_id, options))
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
        match &self.shared.engine.helper {
            Some(program) => self.shared.dial_within(program, uid, ip, port).await,
            None => dial((ip, port).into()).await,
        }
    }

    async fn readings(&self) -> HashMap<ContainerId, Reading> {
        self.shared.readings().await
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        let removable = self.shared.table.lock().removable(id)?;
        if let Some(container) = removable {
            // It is known until the engine has removed it.
            self.shared.destroy(&container.runtime_id).await?;
        }
        self.shared.table.lock().remove(id)
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        if let Ok(sandbox) = self.shared.table.lock().sandbox(uid)
            && let Some(container) = sandbox.alive().next()
        {
            return Err(Error::Running(container.id.to_string()));
        }
        self.shared.remove_pod(uid).await?;
        self.shared.table.lock().remove_sandbox(uid)
    }
}

impl Shared {
    /// Removes a container, even if it is running.
    async fn destroy(&self, runtime_id: &str) -> Result<(), Error> {
        let removed = self.remove_container(runtime_id).await;
        removed.map_err(|error| engine_error(format!("remove container {runtime_id}"), error))
    }

    async fn remove_container(&self, runtime_id: &str) -> Result<(), BollardError> {
        if runtime_id.is_empty() {
            return Ok(());
        }
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let removed = self
            .engine
            .client
            .remove_container(runtime_id, Some(options));
        ignore_not_found(removed.await)
    }
}

/// Streams a container's output, both streams in the order of writing.
fn read_log(engine: &Engine, runtime_id: String, options: &LogOptions) -> Log {
    let tail = options
        .tail
        .map_or("all".to_owned(), |lines| lines.to_string());
    let since = options.since.unwrap_or_default().clamp(0, i32::MAX.into());
    let wanted = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .follow(options.follow)
        .timestamps(options.timestamps)
        .tail(&tail)
        .since(i32::try_from(since).unwrap_or_default())
        .build();
    let pieces = engine.client.logs(&runtime_id, Some(wanted));
    let pieces = pieces.map_ok(bollard::container::LogOutput::into_bytes);
    let failed =
        move |error| engine_error(format!("read the log of container {runtime_id}"), error);
    pieces.map_err(failed).boxed()
}

fn engine_error(what: impl Into<String>, source: BollardError) -> Error {
    let what = what.into();
    match source {
        BollardError::DockerResponseServerError { message, .. } => {
            Error::Refused { what, why: message }
        }
        source => Error::Engine {
            what,
            source: Box::new(source),
        },
    }
}

/// Returns whether the engine reports that the object does not exist.
fn is_not_found(error: &BollardError) -> bool {
    matches!(
        error,
        BollardError::DockerResponseServerError {
            status_code: 404,
            ..
        }
    )
}

/// Returns whether it is unknown what the engine has done: it has not answered at all.
fn is_unanswered(error: &BollardError) -> bool {
    !matches!(
        error,
        BollardError::DockerResponseServerError { .. } | BollardError::RequestTimeoutError
    )
}

/// Asks the engine once more if it has not answered at all. For questions, which change nothing.
async fn ask<T, F>(question: impl Fn() -> F) -> Result<T, BollardError>
where
    F: Future<Output = Result<T, BollardError>>,
{
    match question().await {
        Err(error) if is_unanswered(&error) => question().await,
        answered => answered,
    }
}

/// Ignores the error of removing an object that is absent or already being removed.
fn ignore_not_found(removed: Result<(), BollardError>) -> Result<(), BollardError> {
    match removed {
        Err(BollardError::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(BollardError::DockerResponseServerError {
            status_code: 409,
            message,
        }) if message.contains("already in progress") => Ok(()),
        removed => removed,
    }
}
