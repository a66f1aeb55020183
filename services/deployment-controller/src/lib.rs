//! The Deployment controller: rolls Pods out by creating and scaling ReplicaSets.
//!
//! A Deployment owns one ReplicaSet for each revision of its Pod template. A rollout scales the new ReplicaSet up
//! within `maxSurge`, and the old ones down within `maxUnavailable`.

mod act;
mod action;
mod annotations;
mod deployment;
mod plan;
mod progress;
mod reconciler;
mod recreate;
mod replica_sets;
mod rolling;
mod scaling;
mod set;
mod status;
mod world;

pub use action::Action;
pub use deployment::{DeploymentView, Strategy};
pub use plan::plan;
pub use reconciler::{CONTROLLER, Deployments};
pub use set::ReplicaSetView;
pub use status::{revision, status};
pub use world::World;
