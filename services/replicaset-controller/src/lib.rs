//! The controllers of ReplicaSets and ReplicationControllers: keep each at its desired number of Pods.
//!
//! A Pod belongs to a set by its owner reference. Orphans that the selector matches are adopted, Pods that it no longer
//! matches are released; then Pods are created or deleted. A ReplicationController is treated as the ReplicaSet of the
//! same spec, as upstream does.

mod act;
mod backoff;
mod plan;
mod ranking;
mod reconciler;
mod replication;
mod set;
mod status;
mod world;

pub use backoff::REJECTED_KEPT;
pub use plan::{Action, BURST, plan};
pub use reconciler::{
    CONTROLLER, REPLICATION_CONTROLLER, ReplicaSets, Replicas, ReplicationControllers,
};
pub use replication::ReplicationControllerView;
pub use set::{ReplicaSetView, Replicated};
pub use status::status;
pub use world::World;
