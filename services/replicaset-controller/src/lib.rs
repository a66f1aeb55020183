//! The ReplicaSet controller: keeps each ReplicaSet at its desired number of Pods.
//!
//! A Pod belongs to a set by its owner reference. Orphans that the selector matches are adopted, Pods that it no longer
//! matches are released; then Pods are created or deleted.

mod act;
mod backoff;
mod plan;
mod pod;
mod ranking;
mod reconciler;
mod set;
mod status;
mod world;

pub use backoff::REJECTED_KEPT;
pub use plan::{Action, BURST, plan};
pub use pod::{Admission, Phase, PodView};
pub use reconciler::{CONTROLLER, ReplicaSets};
pub use set::ReplicaSetView;
pub use status::status;
pub use world::World;
