//! The kinds of runtimes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a container runtime, as settings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Containers of a runtime that serves the CRI, such as containerd.
    Cri,
    /// Containers of a Docker engine.
    Docker,
    /// Processes on this machine.
    Process,
    /// Simulated containers without processes.
    Simulated,
}
