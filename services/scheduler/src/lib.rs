//! Finds a node for every Pod: filter, score, bind.
//!
//! One leader decides on all waiting Pods in one pure plan, each Pod seeing what those before it took. The next cycle
//! starts only when the cache shows what the last one bound, so that no Pod must be assumed to be where it was bound to,
//! unless the binding was not answered. A Pod that fits nowhere is unschedulable until a node or a Pod changes in a way
//! that matters.

mod act;
mod anti_affinity;
mod assumed;
mod cycle;
mod filter;
mod metrics;
mod node;
mod plan;
mod pod;
mod ports;
mod score;
mod settings;
mod snapshot;
mod start;
mod status;
mod unschedulable;
mod unsupported;

pub use anti_affinity::{Existing, Term};
pub use node::NodeView;
pub use plan::{Action, plan};
pub use pod::{NodeWants, PodView, Wants};
pub use ports::HostPort;
pub use settings::Settings;
pub use snapshot::{NodeInfo, Snapshot};
pub use start::start;
