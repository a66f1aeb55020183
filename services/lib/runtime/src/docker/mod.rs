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
mod network;
mod pod_cgroup;
mod published;
mod refresh;
mod resize;
mod resolv_conf;
mod runtime;
mod settings;
mod state;
mod stop;
mod sub_path;
mod sweep;
mod termination;
mod usage;
mod volume;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bollard::errors::Error as BollardError;
use bollard::query_parameters::{LogsOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use setpoint_task::supervise;
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use self::image_volume::ImageVolumes;
use super::image_pulls::Images;
use super::table::Table;
use super::{Error, Log, LogOptions, Wake};

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
