//! Deletes the dependants of deleted owners, or orphans them.
//!
//! ```text
//! stream of metadata ─▶ graph of owners by uid ─▶ objects to look at ─▶ live reads ─▶ plan ─▶ deletions, removals
//! ```
//!
//! The graph only says which objects to look at: each decision is made of the object, its owners and, before they are
//! orphaned or said to be gone, its dependants as the gateway has them then. A leader builds the graph when its term begins,
//! so that standbys cost nothing.

mod act;
mod follow;
mod graph;
mod item;
mod plan;
mod reconciler;

pub use follow::{Follower, Woken};
pub use graph::{Graph, Standing};
pub use item::{Item, Owner, OwnerState};
pub use plan::{Action, BURST, Live, World, plan};
pub use reconciler::{CONTROLLER, Collector};
