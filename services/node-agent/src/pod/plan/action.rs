//! The actions of a plan.

use std::net::Ipv4Addr;
use std::time::Duration;

use setpoint_runtime::{ContainerId, PodResources};

/// An action on a Pod, its sandbox or one of its containers.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Reserve the Pod's resources and an address on the node.
    Admit,
    /// Allocate the resources of a resize, which the node has.
    Allocate,
    /// Create or recreate the Pod's sandbox.
    RunSandbox {
        /// The Pod's address.
        ip: Ipv4Addr,
    },
    /// Start a container.
    Start {
        /// Its name in the spec.
        name: String,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// Backoff to apply after this attempt ends.
        backoff: Duration,
    },
    /// Compare the files of volumes with the objects that they come from, and replace those that differ.
    UpdateVolumes,
    /// Begin the probes of a running container.
    Probe(ContainerId),
    /// Kill a container that has failed, or that gets other resources.
    Kill {
        /// The attempt.
        id: ContainerId,
        /// Time until it is killed by force.
        grace: Duration,
        /// The reason of the Event.
        reason: KillReason,
        /// Whether its restart policy lets it start again.
        restarts: bool,
    },
    /// Begin the preStop hook of a container that is to stop after others.
    PreStop {
        /// The attempt.
        id: ContainerId,
        /// Time until it is stopped, whatever runs.
        grace: Duration,
    },
    /// Ask a container to stop.
    Stop {
        /// The attempt to stop.
        id: ContainerId,
        /// Time until it is killed.
        grace: Duration,
    },
    /// Give the Pod as a whole the resources that are allocated, or those that allow what it has, too.
    ResizePod(PodResources),
    /// Give a running container the resources that are allocated.
    Resize(ContainerId),
    /// Remove an attempt that has ended.
    Remove(ContainerId),
    /// Write the status before the next action changes it.
    UpdateStatus,
    /// Remove the sandbox of the Pod with this uid.
    RemoveSandbox(String),
    /// Delete the Pod's object.
    Delete,
}

/// The reason for which a container is killed although its Pod goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// Its postStart hook has failed.
    PostStart,
    /// Its liveness probe fails.
    Liveness,
    /// Its startup probe has failed.
    Startup,
    /// Its resize policy demands a restart.
    Resize,
}
