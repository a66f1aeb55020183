//! Rolls every Deployment to what it declares.
//!
//! A Deployment has one ReplicaSet for each Pod template that it ever had. Pods move from the old sets to the new one
//! by scaling: up as far as the surge leaves room, down as far as enough stay available.

mod act;
mod annotations;
mod deployment;
mod fleet;
mod plan;
mod progress;
mod reconciler;
mod recreate;
mod rolling;
mod scaling;
mod set;
mod status;
mod world;

pub use deployment::{Deployment, Strategy};
pub use plan::{Action, plan};
pub use reconciler::{Deployments, start};
pub use set::Set;
pub use status::{Report, status};
pub use world::World;
