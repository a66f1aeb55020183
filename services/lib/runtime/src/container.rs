//! Attempts at containers, and their states.

use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_proto::core::ResourceRequirements;

use crate::ContainerConfig;

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

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.uid, self.name, self.attempt)
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
