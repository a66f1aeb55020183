//! Finds a node for every Pod: filter, score, bind.
//!
//! One leader decides on all waiting Pods in one pure plan; each decision includes those before it. The next cycle starts
//! when the cache has the bindings of the last one, so that only bindings without a response are assumed. A Pod that no
//! node fits is unschedulable until a relevant change of a node or of another Pod.

mod act;
mod anti_affinity;
mod assumed;
mod cycle;
mod filter;
mod metrics;
mod node;
mod plan;
mod pod;
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
pub use settings::Settings;
pub use snapshot::{NodeInfo, Snapshot};
pub use start::start;
