//! Finds a node for every Pod: filter, score, bind, and preempt.
//!
//! One leader decides on all waiting Pods in one pure plan; each decision includes those before it. The next cycle
//! starts when the cache has the bindings of the last one, so that only bindings without a response are assumed. A Pod
//! that no node fits is unschedulable until a change that its rejecting plugins say may help; if Pods of lower priority
//! can make room for it, they are deleted and the node is reserved for it meanwhile.
//!
//! A cycle takes one snapshot of the caches and makes one plan for up to 256 Pods, those of the highest priority first.
//!
//! * `profile/` has upstream's profiles: the plugins for the Pods of a `schedulerName`, with weights and arguments. All
//!   share the queue, the snapshot and the plan, so that each decision includes those of other profiles before it. Pods
//!   whose scheduler no profile names are left alone.
//! * `plugins/` filter and score, named and worded as upstream's. All nodes are filtered and scored; a seed breaks
//!   ties. What depends on other Pods is counted once for each group of Pods (namespace, selector, controller) in a
//!   cycle, by node, and kept up to date as Pods are placed (`groups.rs`, `terms.rs`).
//! * `preemption.rs` removes the Pods of lower priority from a node, spares as many as it can, in upstream's order, and
//!   ranks nodes as upstream does. The plan first nominates the node, in the Pod's status, and then marks and deletes
//!   the victims. A reservation counts for Pods of the same or lower priority.
//! * A Pod that fits nowhere waits for a change that a plugin that rejected it says may help (`helps`), and for its
//!   backoff of 1 to 10 s. Changes while Pods are decided on are kept and compared when the Pods are added, so that
//!   none is lost; after 300 s a Pod is tried without a change.
//! * A binding without a response counts until the cache has its outcome, and is repeated on the same node.

mod act;
mod affinity;
mod assumed;
mod budget;
mod claim_use;
mod cluster;
mod cluster_event;
mod counts;
mod cycle;
mod group;
mod images;
mod metrics;
mod namespace;
mod node;
mod plan;
mod plugin;
mod plugins;
mod pod;
mod preemption;
mod profile;
mod reason;
mod scoring;
mod service;
mod settings;
mod snapshot;
mod spread;
mod start;
mod status;
mod storage;
mod strategy;
mod terms;
mod tie;
mod topology;
mod unschedulable;
mod unsupported;

pub use affinity::{Affinity, Namespaces, Term};
pub use budget::BudgetView;
pub use claim_use::ClaimUse;
pub use cluster_event::ClusterEvent;
pub use node::NodeView;
pub use plan::{Action, plan, verdicts};
pub use plugin::{Plugin, PluginSet};
pub use plugins::helps;
pub use pod::{NodeWants, PodView, Wants};
pub use profile::{Pending, Profile, Profiles, Settings as ProfileSettings};
pub use reason::FilterReason;
pub use service::ServiceView;
pub use settings::Settings;
pub use snapshot::{NodeInfo, Snapshot};
pub use spread::Constraint;
pub use start::{run, start};
pub use status::Nomination;
pub use storage::{Choice, ClaimView, ClassView, CsiNodeView, CsiVolume, Storage, VolumeView};
pub use strategy::{ResourceWeight, Shape, ShapePoint, Strategy, StrategyType};

/// Runs the scheduler's process.
#[tokio::main(worker_threads = 2)]
pub async fn main() -> std::process::ExitCode {
    setpoint_host::run("scheduler", start).await
}
