//! Runs the Pods that are bound to its nodes and reports their status.
//!
//! ```text
//! watch: Pods of its nodes ───────┐
//! runtime: container state changes ┴▶ queue ─▶ observe → plan → act, until the plan is empty ─▶ status ─▶ gateway
//! ```
//! The runtime holds the actual state and the gateway the desired state. The agent keeps nothing else that must survive
//! a restart.

mod act;
mod admission;
mod agent;
mod container_config;
mod downward;
mod duration;
mod ending;
mod env_file;
mod environment;
mod ephemeral;
mod events;
mod eviction;
mod expand;
#[cfg(test)]
mod fake;
mod fields;
mod handler;
mod hooks;
mod image_gc;
mod metrics;
mod node;
mod plan;
mod pod;
mod pod_resources;
mod probe;
mod reclaim;
mod rejection;
mod resize;
mod restart;
mod service;
mod service_links;
mod settings;
mod shutdown;
mod start;
mod stats;
mod status;
mod subcommand;
mod sysctls;
mod usage;
mod volumes;
mod world;

pub use admission::{AdmitResult, Demand};
pub use ending::Ending;
pub use hooks::PostStart;
pub use plan::{Action, KillReason, plan};
pub use probe::{Health, ProbeKind, ProbeResults};
pub use rejection::{InsufficientResource, Rejection};
pub use resize::{Allocation, Pending, Resize};
pub use settings::{Capacity, Kind, Settings, Switch};
use start::start;
pub use status::status;
pub use world::{AssignedPod, AttemptHistory, LastAttempt, Runs, WaitingReason, World};

/// Runs the agent's process, or the subcommand that the arguments name: the same program is also the shim that supervises one
/// container.
pub fn main() -> std::process::ExitCode {
    // Checked before any thread exists: a shim must stay one small process without an async runtime.
    subcommand::subcommand(std::env::args_os().skip(1)).unwrap_or_else(agent)
}

#[tokio::main(worker_threads = 2)]
async fn agent() -> std::process::ExitCode {
    setpoint_host::run("node-agent", start).await
}
