//! Taint-based eviction: deletes the Pods that do not tolerate the taints of their node with the effect NoExecute.

mod act;
mod plan;
mod reconciler;
mod stay;

pub use plan::{Action, World, plan};
pub use reconciler::{CONTROLLER, Evictions};
pub use stay::Stay;
