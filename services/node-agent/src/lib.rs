//! Runs the Pods that are bound to its nodes and reports their status.
//!
//! ```text
//! watch: Pods of its nodes ───────┐
//! runtime: container state changes ┴▶ queue ─▶ observe → plan → act, until the plan is empty ─▶ status ─▶ gateway
//! ```
//! The runtime holds the actual state and the gateway the desired state. The agent keeps nothing else that must survive
//! a restart.
//!
//! Its code has three rooms, each of which uses only those after it, which `tests/architecture.rs` asserts: `serve`
//! (the gRPC service and the pages of statistics) ─▶ `node` (the Node, admission, eviction, usage) ─▶ `pod` (one Pod)
//! ─▶ the crate `setpoint-runtime`.

mod agent;
mod bootstrap;
mod metrics;
mod node;
mod pod;
mod serve;
mod settings;
mod start;
mod subcommand;

use start::start;

pub use node::Capacity;
pub use pod::demand::{Allocation, Demand, Pending, Resize};
pub use pod::ending::Ending;
pub use pod::health::{Health, PostStart, ProbeKind, ProbeResults};
pub use pod::plan::{Action, KillReason, plan};
pub use pod::rejection::{AdmitResult, InsufficientResource, Rejection};
pub use pod::status::status;
pub use pod::world::{AssignedPod, AttemptHistory, LastAttempt, Runs, WaitingReason, World};
pub use settings::{Settings, Switch};

/// Runs the agent's process, or the subcommand that the arguments name: the same program is also the shim that
/// supervises one container.
pub fn main() -> std::process::ExitCode {
    // Checked before any thread exists: a shim must stay one small process without an async runtime.
    subcommand::subcommand(std::env::args_os().skip(1)).unwrap_or_else(agent)
}

#[tokio::main(worker_threads = 2)]
async fn agent() -> std::process::ExitCode {
    setpoint_host::run("node-agent", start).await
}
