//! Containers of a Docker engine: what `docker ps` shows.
//!
//! ```text
//! k8s_POD_<pod>_<namespace>_<uid>_<attempt>           holds the Pod's address, namespaces and volumes
//! k8s_<container>_<pod>_<namespace>_<uid>_<attempt>   joins them
//! ```
//! Labels say whose they are. Memory is a copy of what the engine knows, kept by its events: an agent that comes back
//! reads it anew and starts nothing twice, for a name can be given to one container only.

mod create;
mod engine;
mod identity;
mod image;
mod life;
mod log;
mod seen;
mod settings;
mod sweep;
mod volume;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as Refusal;
use bollard::query_parameters::RemoveContainerOptionsBuilder;
use parking_lot::Mutex;
use setpoint_controller::Tasks;
use setpoint_model::Key;
use tokio_util::task::AbortOnDropHandle;

use self::image::Images;
use super::table::Table;
use super::{
    Container, ContainerConfig, ContainerId, Error, Log, LogOptions, Origin, Runtime, Sandbox,
    SandboxConfig, Wake,
};

pub use self::engine::{Engine, Unusable};
pub use self::settings::{Fallback, Settings};
pub use self::sweep::{own_cluster, sweep};

/// Containers of an engine. Cheap to clone.
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
    images: Arc<Images>,
    table: Mutex<Table>,
    /// The newest containers that hold Pods together, by the uid of the Pod.
    pauses: Mutex<HashMap<String, Pause>>,
}

/// An attempt at holding a Pod together.
#[derive(Clone, Debug)]
struct Pause {
    /// The engine's id.
    handle: String,
    attempt: u32,
}

impl Docker {
    /// The runtime of a node, with everything that runs there already.
    ///
    /// # Errors
    /// When the engine does not say what it has.
    pub async fn open(
        engine: Engine,
        settings: &Settings,
        node: &str,
        wake: Wake,
        tasks: &Tasks,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            node: node.to_owned(),
            pause_image: settings.pause_image.clone(),
            images: Arc::new(Images::new(engine.client.clone(), Arc::clone(&wake))),
            engine,
            wake,
            table: Mutex::default(),
            pauses: Mutex::default(),
        });
        let listed = shared.relist().await;
        listed.map_err(|error| refused("list the containers of this node", error))?;
        let (watch, tasks) = (Arc::clone(&shared), tasks.clone());
        let watch = tokio::spawn(async move {
            tasks.supervise("engine", "", || watch.watch()).await;
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

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.shared.table.lock().of(pod)
    }

    fn pods(&self) -> Vec<Key> {
        self.shared.table.lock().pods()
    }

    async fn run_sandbox(&self, config: SandboxConfig) -> Result<(), Error> {
        self.shared.hold_together(config).await
    }

    async fn start(&self, config: ContainerConfig) -> Result<Origin, Error> {
        let new = {
            let mut table = self.shared.table.lock();
            table.insert(Container::starting(&config))?
        };
        if !new {
            return Ok(Origin::Machine);
        }
        let launched = self.shared.launch(&config).await;
        match &launched {
            Ok((container, _)) => self.shared.note(container).await,
            Err(_) => self.shared.table.lock().forget(&config.id),
        }
        launched.map(|(_, origin)| origin)
    }

    async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), Error> {
        Shared::stop(&self.shared, id, grace).await
    }

    async fn log(&self, id: &ContainerId, options: &LogOptions) -> Result<Log, Error> {
        let handle = self.shared.table.lock().container(id)?.handle.clone();
        Ok(log::read(&self.shared.engine, handle, options))
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), Error> {
        let handle = match self.shared.table.lock().container(id) {
            Ok(container) => container.handle.clone(),
            Err(_) => return Ok(()),
        };
        self.shared.table.lock().remove(id)?;
        self.shared.destroy(&handle).await
    }

    async fn remove_sandbox(&self, uid: &str) -> Result<(), Error> {
        if let Ok(sandbox) = self.shared.table.lock().sandbox(uid)
            && let Some(container) = sandbox.alive().next()
        {
            return Err(Error::Running(container.id.to_string()));
        }
        self.shared.take_apart(uid).await?;
        self.shared.table.lock().remove_sandbox(uid)
    }
}

impl Shared {
    /// Removes a container, whatever it does.
    async fn destroy(&self, handle: &str) -> Result<(), Error> {
        if handle.is_empty() {
            return Ok(());
        }
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let removed = self.engine.client.remove_container(handle, Some(options));
        settle(removed.await).map_err(|error| refused(format!("remove container {handle}"), error))
    }
}

fn refused(what: impl Into<String>, source: Refusal) -> Error {
    let what = what.into();
    let source = Box::new(source);
    Error::Engine { what, source }
}

/// Does the engine say that there is no such thing?
fn absent(error: &Refusal) -> bool {
    matches!(
        error,
        Refusal::DockerResponseServerError {
            status_code: 404,
            ..
        }
    )
}

/// What is gone, or about to be, needs no removal.
fn settle(removed: Result<(), Refusal>) -> Result<(), Refusal> {
    match removed {
        Err(Refusal::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(Refusal::DockerResponseServerError {
            status_code: 409,
            message,
        }) if message.contains("already in progress") => Ok(()),
        removed => removed,
    }
}
