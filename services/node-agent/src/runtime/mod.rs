//! What runs containers: the trait that every runtime implements, modelled on Kubernetes' CRI.

mod config;
pub mod docker;
pub mod log;
mod origin;
pub mod process;
mod script;
pub mod simulated;
mod table;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_model::Key;

pub use config::{
    ContainerConfig, File, Limits, LogLimits, Mount, Pull, SandboxConfig, Security, Volume,
    VolumeKind,
};

pub use log::{Log, LogOptions};
pub use origin::{Origin, Pulled};

/// Tells the agent to look at a Pod, because something of it changed.
///
/// It says where to look and never what happened, so that calls may be coalesced and none can be lost.
pub type Wake = Arc<dyn Fn(&Key) + Send + Sync>;

/// Something that runs containers in sandboxes, one sandbox a Pod.
///
/// Every call is idempotent. What exists is read with [`Runtime::sandboxes`], from memory and at once; whatever changes
/// without being asked for wakes the agent through the [`Wake`] that the runtime was made with.
pub trait Runtime: Send + Sync + 'static {
    /// The scheme of its container ids, for example `process`.
    const NAME: &'static str;
    /// Does it really run what a container names, so that an environment must be made for it?
    const RUNS_COMMANDS: bool;
    /// Does it run images, with the programs they bring, and mount volumes? Else a placeholder stands in for what only
    /// an image would say.
    const RUNS_IMAGES: bool;

    /// The sandboxes of the Pods of this name: rarely two, while one makes room for its successor.
    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox>;

    /// All Pods that have a sandbox, those of an earlier life of the agent included.
    fn pods(&self) -> Vec<Key>;

    /// Makes room for the containers of a Pod; anew, if the room that there was is lost.
    fn run_sandbox(&self, config: SandboxConfig) -> impl Future<Output = Result<(), Error>> + Send;

    /// Starts a container; when it returns, the container runs, will soon, or has failed to and says so in its state.
    /// Gives where its image came from.
    fn start(&self, config: ContainerConfig) -> impl Future<Output = Result<Origin, Error>> + Send;

    /// Asks a container to stop and sees to it that it does once `grace` has passed. Does not wait.
    fn stop(
        &self,
        id: &ContainerId,
        grace: Duration,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// What a container wrote.
    fn log(
        &self,
        id: &ContainerId,
        options: &LogOptions,
    ) -> impl Future<Output = Result<Log, Error>> + Send;

    /// Forgets a container that has exited.
    fn remove(&self, id: &ContainerId) -> impl Future<Output = Result<(), Error>> + Send;

    /// Forgets a sandbox, all of whose containers have exited.
    fn remove_sandbox(&self, uid: &str) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Why a runtime could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime knows no such container or sandbox.
    #[error("{0} does not exist")]
    Unknown(String),
    /// It must stop first.
    #[error("{0} is still running")]
    Running(String),
    /// The files that outlive the agent cannot be read or written.
    #[error("cannot keep the state of {what}")]
    State {
        /// Of which Pod or container.
        what: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The shim that was to watch over a container did not come up.
    #[error("the shim of {0} did not start in time")]
    Shim(String),
    /// The runtime does not do such things.
    #[error("{0}")]
    Unsupported(String),
    /// The container is not to be started as it is configured.
    #[error("{0}")]
    Config(String),
    /// The image is not there: not yet, or not at all.
    #[error("{message}")]
    Image {
        /// One word, as the kubelet says it.
        reason: &'static str,
        /// For people.
        message: String,
        /// Has a pull of it just begun?
        pulling: bool,
    },
    /// The container engine refused, or did not answer.
    #[error("the engine cannot {what}")]
    Engine {
        /// What it was asked for.
        what: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// One attempt at running one container of one Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContainerId {
    /// The Pod.
    pub uid: String,
    /// The container's name in the Pod's spec.
    pub name: String,
    /// Counts restarts, from 0.
    pub attempt: u32,
}

impl ContainerId {
    /// The attempt before this one.
    pub fn before(&self) -> Self {
        Self {
            attempt: self.attempt.saturating_sub(1),
            ..self.clone()
        }
    }
}

/// Names a Pod as the kubelet does in messages: `web_default(5be0…)`.
pub fn pod_label(pod: &Key, uid: &str) -> String {
    format!("{}_{}({uid})", pod.name, pod.namespace)
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.uid, self.name, self.attempt)
    }
}

/// A sandbox and its containers, as they are now.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// The Pod that it is for.
    pub config: SandboxConfig,
    /// What the runtime itself calls it: another one each time that it is made anew; empty where that never happens.
    pub id: String,
    /// Does it still hold what the containers share? One that does not has to be made anew.
    pub ready: bool,
    /// By name, then attempt.
    pub containers: Vec<Container>,
}

impl Sandbox {
    /// The newest attempt at a container.
    pub fn latest(&self, name: &str) -> Option<&Container> {
        self.attempts(name).next_back()
    }

    /// The attempts at a container that are still known, oldest first.
    pub fn attempts(&self, name: &str) -> impl DoubleEndedIterator<Item = &Container> {
        self.containers
            .iter()
            .filter(move |container| container.id.name == name)
    }

    /// Those that have not exited.
    pub fn alive(&self) -> impl Iterator<Item = &Container> {
        self.containers
            .iter()
            .filter(|container| !matches!(container.state, State::Exited(_)))
    }
}

/// One attempt at a container, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// Which it is.
    pub id: ContainerId,
    /// The sandbox that it started in, as the runtime calls it.
    pub sandbox: String,
    /// As it was started from.
    pub image: String,
    /// What the image really is, if its name does not say all.
    pub image_id: String,
    /// What the runtime itself calls the container; empty where it uses our id.
    pub handle: String,
    /// How long to rest after it before the next attempt.
    pub backoff: Duration,
    /// How it fares.
    pub state: State,
}

impl Container {
    /// One that is about to run.
    pub fn starting(config: &ContainerConfig) -> Self {
        Self {
            id: config.id.clone(),
            sandbox: String::new(),
            image: config.image.clone(),
            image_id: String::new(),
            handle: String::new(),
            backoff: config.backoff,
            state: State::Starting,
        }
    }
}

/// `Starting → Running → Exited`, never back.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Asked for, and not there yet.
    Starting,
    /// Its process runs.
    Running {
        /// Since when.
        since: Timestamp,
        /// When it will be killed, once it was asked to stop.
        stopping: Option<Timestamp>,
    },
    /// Its process is no more.
    Exited(Exit),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// As a shell would report it: 128 + n for a signal.
    pub code: i32,
    /// When it had begun.
    pub started: Timestamp,
    /// When it ended.
    pub finished: Timestamp,
    /// Where the code does not say all: `StartError`, `ContainerStatusUnknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When this agent noticed, by a clock that nobody sets.
    #[serde(skip)]
    pub noticed: Option<Instant>,
}

impl Exit {
    /// It ended in an ordinary way.
    pub fn new(code: i32, started: Timestamp, finished: Timestamp) -> Self {
        Self {
            code,
            started,
            finished,
            reason: None,
            message: String::new(),
            noticed: None,
        }
    }

    /// The same, with a reason that the code does not tell.
    #[must_use]
    pub fn because(mut self, reason: &str, message: impl Into<String>) -> Self {
        self.reason = Some(reason.to_owned());
        self.message = message.into();
        self
    }

    /// The word in its status.
    pub fn reason(&self) -> &str {
        match (&self.reason, self.code) {
            (Some(reason), _) => reason,
            (None, 0) => "Completed",
            (None, _) => "Error",
        }
    }
}
