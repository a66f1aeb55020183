//! Finds a node for every Pod: filter, score, bind.
//!
//! One leader decides on all waiting Pods in one pure plan, each Pod seeing what those before it took. The next round
//! starts only when the cache shows what the last one bound, so nothing has to be assumed.
//! A Pod that fits nowhere waits in the backlog until a node or a Pod changes in a way that matters.

mod act;
mod backlog;
mod doubts;
mod filter;
mod metrics;
mod node;
mod plan;
mod pod;
mod resources;
mod rounds;
mod score;
mod settings;
mod status;
mod world;

use std::sync::Arc;

use setpoint_host::Host;
use setpoint_machinery::election;
use setpoint_machinery::events::Recorder;
use setpoint_machinery::gateway::Gateway;
use setpoint_machinery::informer::Delta;
use setpoint_machinery::queue::Queue;
pub use node::NodeView;
pub use plan::{Action, plan};
pub use pod::{NodeWants, PodView, Wants};
pub use resources::Resources;
pub use rounds::Scheduler;
pub use settings::Settings;
pub use world::{Candidate, World};

/// Runs the scheduler until shutdown.
///
/// # Errors
/// When the gateway's address is none, or the election cannot go on.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    todo!()
}
