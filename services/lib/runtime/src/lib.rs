//! Container runtimes: the trait that each implements, modelled on the CRI.

mod archive;
mod config;
mod descendants;
mod dns;
pub mod docker;
mod host_path;
mod layout;
pub mod log;
pub mod process;
pub mod program;
pub mod simulated;
mod space;
pub mod streams;
mod sub_path;
mod table;
mod termination;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_model::Key;
use setpoint_proto::core::{ContainerImage, ResourceRequirements};

pub use config::{
    Console, ContainerConfig, File, HostPath, Hosts, ImageOrigin, ImageVolume, Limits, LogLimits,
    Mount, PodResources, Processes, Pull, Pulled, SandboxConfig, Security, TerminationMessage,
    Volume, VolumeKind,
};

pub use dns::Dns;
pub use log::{Log, LogOptions};
pub use space::{ContainerSpace, Space};
pub use streams::{Connection, Input, Inputs, Output, Outputs, Streams};

/// Maximum size of a file of a volume that the agent reads, in bytes.
pub const MAX_FILE: usize = 1 << 20;

/// Enqueues a Pod for a reconcile because its state in the runtime changed.
///
/// It carries no information about the change, so that calls may be coalesced without loss.
pub type Wake = Arc<dyn Fn(&Key) + Send + Sync>;

/// A container runtime with one sandbox per Pod.
///
/// A handle of the runtime, which is cheap to clone. Every call is idempotent. [`Runtime::sandboxes`] returns the current state from memory, without I/O. State changes
/// that were not requested call the [`Wake`] that the runtime was created with.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// The scheme of its container ids, for example `process`.
    const NAME: &'static str;
    /// Whether containers run commands, so that an environment must be resolved.
    const RUNS_COMMANDS: bool;
    /// Whether containers run images and mount volumes. Otherwise a placeholder runs in place of a container without a
    /// command.
    const RUNS_IMAGES: bool;
    /// Whether the CPU usage of containers is simulated, so that there is none to read.
    const SIMULATES_LOAD: bool = false;

    /// Returns the images that are present; none if it uses no images.
    fn images(&self) -> impl Future<Output = Vec<ContainerImage>> + Send {
        std::future::ready(Vec::new())
    }

    /// Removes images that it has pulled, that no container uses, and whose pull was at least `min_age` ago, until `bytes`
    /// are freed. Returns the number of bytes freed.
    fn remove_images(&self, _bytes: u64, _min_age: Duration) -> impl Future<Output = u64> + Send {
        std::future::ready(0)
    }

    /// Returns what containers and volumes of the Pods with these uids hold of the node's disks, of those that can be read.
    fn disk_usage(&self, _pods: HashSet<String>) -> impl Future<Output = DiskUsage> + Send {
        std::future::ready(DiskUsage::default())
    }

    /// Reads a file of a volume of a Pod, of at most [`MAX_FILE`] bytes.
    fn read_file(
        &self,
        _uid: &str,
        _volume: &str,
        _path: &str,
    ) -> impl Future<Output = Result<Vec<u8>, Error>> + Send {
        let message = "this node has no files of volumes".to_owned();
        std::future::ready(Err(Error::Unsupported(message)))
    }

    /// Returns whether it mounts volumes in containers.
    fn mounts_volumes(&self) -> bool;

    /// Returns the sandboxes of all Pods with this name: usually one, two while a predecessor is being removed.
    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox>;

    /// Returns the state of a container, from memory; `None` if there is no such container.
    fn state(&self, id: &ContainerId) -> Option<State>;

    /// Returns all Pods that have a sandbox, including those created before the agent restarted.
    fn pods(&self) -> Vec<Key>;

    /// Creates a Pod's sandbox, or recreates a lost one.
    fn run_sandbox(&self, config: SandboxConfig) -> impl Future<Output = Result<(), Error>> + Send;

    /// Replaces the files of volumes of a running sandbox. Each volume changes at once.
    ///
    /// # Errors
    /// If the runtime mounts no volumes, or cannot change those of the sandbox.
    fn update_volumes(
        &self,
        uid: &str,
        volumes: Vec<Volume>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Starts a container and returns the origin of its image. On return the container is starting, running, or has
    /// failed; see its state.
    fn start(
        &self,
        config: ContainerConfig,
    ) -> impl Future<Output = Result<ImageOrigin, Error>> + Send;

    /// Gives a running container other requests and limits, of which the runtime enforces those that it enforces at the
    /// start.
    ///
    /// # Errors
    /// If the container does not run, or cannot have these limits.
    fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives a running Pod other resources as a whole, and its containers without limits of their own the limits that follow.
    /// Returns whether the containers together are bounded by them.
    ///
    /// # Errors
    /// If the Pod does not run, or uses more.
    fn resize_pod(
        &self,
        _uid: &str,
        _resources: PodResources,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(false))
    }

    /// Returns whether it bounds the containers of a Pod together.
    fn bounds_pods(&self) -> bool {
        false
    }

    /// Asks a container to stop and kills it after `grace`. Does not wait.
    fn stop(
        &self,
        id: &ContainerId,
        grace: Duration,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the log of a container.
    fn log(
        &self,
        id: &ContainerId,
        options: &LogOptions,
    ) -> impl Future<Output = Result<Log, Error>> + Send;

    /// Runs a command in a running container, with the container's environment, working directory, user and limits.
    /// Dropping the output before its end ends the command, as does the end of the container.
    fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> impl Future<Output = Result<Outputs, Error>> + Send;

    /// Connects to the streams of a running container's own process. The output ends when the container ends, without
    /// [`Output::Exit`].
    fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> impl Future<Output = Result<Outputs, Error>> + Send;

    /// Opens a TCP connection to a port of a Pod.
    fn connect(
        &self,
        uid: &str,
        port: u16,
    ) -> impl Future<Output = Result<Connection, Error>> + Send;

    /// Returns what the running containers have used so far, of those that can be read.
    fn readings(&self) -> impl Future<Output = HashMap<ContainerId, Reading>> + Send;

    /// Removes a container that has exited.
    fn remove(&self, id: &ContainerId) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes a sandbox whose containers have all exited.
    fn remove_sandbox(&self, uid: &str) -> impl Future<Output = Result<(), Error>> + Send;
}

/// What a container has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The CPU time since it started.
    pub cpu: Duration,
    /// The memory that it holds, in bytes.
    pub memory: u64,
}

/// The space that Pods hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// That of containers.
    pub containers: HashMap<ContainerId, ContainerSpace>,
    /// That of the volumes that end with their Pod, those in memory included, by its uid and by name.
    pub volumes: HashMap<String, BTreeMap<String, Space>>,
}

/// The error of a runtime.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such container or sandbox.
    #[error("{0} does not exist")]
    Unknown(String),
    /// The container must stop first.
    #[error("{0} is still running")]
    Running(String),
    /// The container does not run.
    #[error("container {0} is not running")]
    NotRunning(String),
    /// A connection to a Pod could not be established.
    #[error("{0}")]
    Connect(streams::Unconnected),
    /// A command could not be started, or its streams broke.
    #[error("cannot run the command in {container}")]
    Exec {
        /// The container.
        container: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The runtime's state files cannot be read or written.
    #[error("cannot read or write the state of {what}")]
    State {
        /// The Pod, container or directory.
        what: String,
        /// The error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The shim of a container did not start.
    #[error("the shim of {0} did not start in time")]
    Shim(String),
    /// The runtime does not support the request.
    #[error("{0}")]
    Unsupported(String),
    /// The container cannot be started as configured.
    #[error("{0}")]
    Config(String),
    /// The image is not available: not yet, or it cannot be pulled.
    #[error("{message}")]
    Image {
        /// The image.
        image: String,
        /// The kubelet's CamelCase reason.
        reason: &'static str,
        /// Human-readable details.
        message: String,
        /// Whether this call began a pull.
        pulling: bool,
    },
    /// The container engine refused an operation.
    #[error("the container engine cannot {what}: {why}")]
    Refused {
        /// The operation that failed, as an infinitive.
        what: String,
        /// The engine's message.
        why: String,
    },
    /// The container engine did not answer, or its answer cannot be read.
    #[error("the container engine cannot {what}")]
    Engine {
        /// The operation that failed, as an infinitive.
        what: String,
        /// The engine's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Identifies one attempt at one container of one Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContainerId {
    /// Uid of the Pod.
    pub uid: String,
    /// Name of the container in the Pod's spec.
    pub name: String,
    /// Number of the attempt, from 0.
    pub attempt: u32,
}

impl ContainerId {
    /// Returns the id of the previous attempt.
    pub fn before(&self) -> Self {
        Self {
            attempt: self.attempt.saturating_sub(1),
            ..self.clone()
        }
    }
}

/// Returns the name of a Pod as the kubelet formats it in messages: `web_default(5be0…)`.
pub fn pod_label(pod: &Key, uid: &str) -> String {
    format!("{}_{}({uid})", pod.name, pod.namespace)
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.uid, self.name, self.attempt)
    }
}

/// The current state of a sandbox and its containers.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// Its configuration.
    pub config: SandboxConfig,
    /// The runtime's id of the sandbox, which changes when the sandbox is recreated; empty if the runtime never
    /// recreates one.
    pub id: String,
    /// Whether the namespaces that its containers share still exist. If not, it must be recreated.
    pub ready: bool,
    /// The attempts, sorted by container name, then number.
    pub containers: Vec<Container>,
}

impl Sandbox {
    /// Returns the newest attempt at a container.
    pub fn latest(&self, name: &str) -> Option<&Container> {
        self.attempts(name).next_back()
    }

    /// Returns the known attempts at a container, oldest first.
    pub fn attempts(&self, name: &str) -> impl DoubleEndedIterator<Item = &Container> {
        self.containers
            .iter()
            .filter(move |container| container.id.name == name)
    }

    /// Returns the containers that have not exited.
    pub fn alive(&self) -> impl Iterator<Item = &Container> {
        self.containers
            .iter()
            .filter(|container| !matches!(container.state, State::Exited(_)))
    }
}

/// The current state of one attempt at a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// Its id.
    pub id: ContainerId,
    /// The runtime's id of the sandbox that it started in.
    pub sandbox: String,
    /// Image, as named in the Pod's spec.
    pub image: String,
    /// The runtime's id of the image; empty if it has none.
    pub image_id: String,
    /// The runtime's id of the container; empty if the runtime uses [`ContainerId`].
    pub runtime_id: String,
    /// Backoff to apply after it ends.
    pub backoff: Duration,
    /// The number of restarts of all containers of its Pod before it was started.
    pub round: u32,
    /// The requests and limits that it was started with, or has been given since; `None` if they are not known.
    pub resources: Option<ResourceRequirements>,
    /// Its state.
    pub state: State,
}

impl Container {
    /// Returns a container in the state `Starting`.
    pub fn starting(config: &ContainerConfig) -> Self {
        Self {
            id: config.id.clone(),
            sandbox: String::new(),
            image: config.image.clone(),
            image_id: String::new(),
            runtime_id: String::new(),
            backoff: config.backoff,
            round: config.round,
            resources: Some(config.resources.clone()),
            state: State::Starting,
        }
    }
}

/// State of a container: `Starting → Running → Exited`, never back.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Requested, but its process does not run yet.
    Starting,
    /// Its process runs.
    Running {
        /// Start time.
        since: Timestamp,
        /// Deadline of a requested stop, after which it is killed.
        stopping: Option<Timestamp>,
    },
    /// Its process has ended or could not be started.
    Exited(Exit),
}

/// The end of a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code; 128 + n if killed by signal n.
    pub code: i32,
    /// Start time.
    pub started: Timestamp,
    /// End time.
    pub finished: Timestamp,
    /// Overrides the reason derived from the code, for example `StartError` or `ContainerStatusUnknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Human-readable details.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Monotonic time at which this process observed the end.
    #[serde(skip)]
    pub observed: Option<Instant>,
}

impl Exit {
    /// Returns an end whose reason follows from the code.
    pub fn new(code: i32, started: Timestamp, finished: Timestamp) -> Self {
        Self {
            code,
            started,
            finished,
            reason: None,
            message: String::new(),
            observed: None,
        }
    }

    /// Sets a reason and a message.
    #[must_use]
    pub fn because(mut self, reason: &str, message: impl Into<String>) -> Self {
        self.reason = Some(reason.to_owned());
        self.message = message.into();
        self
    }

    /// Returns the reason for the container's status.
    pub fn reason(&self) -> &str {
        match (&self.reason, self.code) {
            (Some(reason), _) => reason,
            (None, 0) => "Completed",
            (None, _) => "Error",
        }
    }
}
