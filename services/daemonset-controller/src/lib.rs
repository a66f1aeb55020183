//! The DaemonSet controller: keeps one Pod of each DaemonSet on every node that should run it.
//!
//! A Pod is created for its node by an affinity to the node's name, and the scheduler binds it. The templates of the
//! past are ControllerRevisions; a rollout replaces the Pods of old ones node by node.

mod act;
mod backoff;
mod node;
mod nodes;
mod plan;
mod reconciler;
mod revisions;
mod rolling;
mod set;
mod status;
mod sync;
mod world;

pub use backoff::{Backoff, LONGEST as LONGEST_BACKOFF};
pub use node::NodeView;
pub use plan::{Action, BURST, Found, plan};
pub use reconciler::{CONTROLLER, DaemonSets, Informers};
pub use set::{DaemonSetView, Placement, Strategy};
pub use status::status;
pub use world::World;
