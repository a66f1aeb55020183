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
mod runtime;
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
use super::table::Table;
use super::{ContainerConfig, ContainerId, Error, Obstacle, SandboxConfig, State, Wake};

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
