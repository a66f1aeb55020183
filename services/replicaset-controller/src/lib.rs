//! Keeps every ReplicaSet at its number of Pods.
//!
//! Pods belong to a set by their owner reference. Orphans that the selector matches are adopted, Pods that it matches
//! no more are released; then Pods are created or deleted until there are as many as wanted.

mod act;
mod backoff;
mod plan;
mod pod;
mod ranking;
mod reconciler;
mod set;
mod status;
mod world;

pub use backoff::KEPT;
pub use plan::{Action, BURST, plan};
pub use pod::{Admission, Phase, Pod};
pub use reconciler::{ReplicaSets, start};
pub use set::Set;
pub use status::status;
pub use world::World;
