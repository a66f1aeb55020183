//! The configurations of containers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_proto::core::ResourceRequirements;

use super::{Mount, PodResources, Pull, Security};
use crate::{ContainerId, Dns, Keyring};

/// The configuration of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerConfig {
    /// The attempt.
    pub id: ContainerId,
    /// Image, as named in the Pod's spec.
    pub image: String,
    /// Overrides the image's entrypoint unless empty.
    pub command: Vec<String>,
    /// Overrides the image's arguments unless empty.
    #[serde(default)]
    pub args: Vec<String>,
    /// The complete environment.
    pub env: Vec<(String, String)>,
    /// Working directory; empty for the image's, or the sandbox's directory in the process runtime.
    pub working_dir: String,
    /// Backoff to apply after this attempt ends.
    pub backoff: Duration,
    /// The number of restarts of all containers of its Pod before this attempt.
    #[serde(default)]
    pub round: u32,
    /// Image pull policy.
    #[serde(default)]
    pub pull: Pull,
    /// The credentials of registries of images. Never persisted, because they are secrets.
    #[serde(skip)]
    pub keyring: Keyring,
    /// Resource requests and limits.
    #[serde(default)]
    pub resources: ResourceRequirements,
    /// The limits of its Pod as a whole; `None` if the Pod has no resources of its own.
    #[serde(default)]
    pub pod: Option<PodResources>,
    /// The score by which the kernel chooses it when memory is short, -1000 to 1000; `None` for the runtime's default.
    #[serde(default)]
    pub oom_score_adj: Option<i64>,
    /// Security settings.
    #[serde(default)]
    pub security: Security,
    /// Log limits.
    #[serde(default)]
    pub log: LogLimits,
    /// The terminal and stdin.
    #[serde(default)]
    pub console: Console,
    /// Signal to stop it with; empty for the image's.
    #[serde(default)]
    pub stop_signal: String,
    /// The place of its termination message.
    #[serde(default)]
    pub termination_message: TerminationMessage,
    /// The resolver configuration of its Pod; `None` for that of the node.
    #[serde(default)]
    pub dns: Option<Dns>,
    /// The processes that it sees.
    #[serde(default)]
    pub processes: Processes,
    /// The mounts. Never persisted, because they contain secrets.
    #[serde(skip)]
    pub mounts: Vec<Mount>,
}

impl ContainerConfig {
    /// Returns the configuration without what may contain secrets: the environment, and the command line, in which
    /// variables are expanded.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        Self {
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the whole command line; empty if only the image defines it.
    pub fn line(&self) -> Vec<String> {
        match self.command.as_slice() {
            [] => Vec::new(),
            command => [command, &self.args].concat(),
        }
    }
}

/// The processes that a container sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Processes {
    /// The container's own processes.
    #[default]
    Own,
    /// The Pod's processes.
    OfPod,
    /// The processes of another container of the Pod.
    Of(ContainerId),
}

/// The console of a container's own process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Console {
    /// Keep stdin open for clients that attach.
    pub stdin: bool,
    /// Close stdin when the first such client leaves.
    pub stdin_once: bool,
    /// Give it a terminal.
    pub tty: bool,
}

/// The place of a container's termination message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminationMessage {
    /// Path of a file; empty for none.
    pub path: String,
    /// Use the end of the log if the file is empty and the container has failed.
    pub falls_back_to_logs: bool,
}

/// Limits of a container's log. The defaults are the kubelet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// Size in bytes at which a file is rotated.
    pub max_size: u64,
    /// Maximum number of files, the current one included; at least two.
    pub max_files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            max_size: 10 << 20,
            max_files: 5,
        }
    }
}
