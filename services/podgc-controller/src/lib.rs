//! The controller that deletes Pods which no other component removes.
//!
//! ```text
//! ended, and more than the threshold     oldest first  ─┐
//! its node is gone                       quarantine     ├─▶ phase Failed, unless it has ended ─▶ deletion without a grace period
//! being deleted, never bound                            │
//! being deleted, its node out of service               ─┘
//! ```

mod act;
mod node;
mod plan;
mod reconciler;
mod settings;
mod surplus;

pub use node::NodeView;
pub use plan::{Action, NodeState, World, plan};
pub use reconciler::{CONTROLLER, Garbage};
pub use settings::Collection;
pub use surplus::surplus;
