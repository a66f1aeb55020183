//! Deletes the dependants of deleted owners, or orphans them.
//!
//! ```text
//! stream of metadata ─▶ graph of owners by uid ─▶ objects to look at ─▶ live reads ─▶ plan ─▶ deletions, removals
//! ```
//!
//! The graph only says which objects to look at: each decision is made of the object, its owners and, before they are
//! orphaned or said to be gone, its dependants as the gateway has them then. A leader builds the graph when its term
//! begins, so that standbys cost nothing.
//!
//! The leader follows one stream, `Metadata.Watch`: the owners, finalizers and deletions of the objects of all kinds
//! but Events, custom ones included, in the order of the store's log. Changes of anything else are not sent. A decision
//! is made of one consistent read, `Metadata.Get`, of the object and the owners that its references name; before
//! dependants are orphaned, or an owner is said to have none that blocks it, `Metadata.List` reads them from all kinds.
//!
//! * Deletions have uid and resourceVersion as preconditions. References and finalizers are removed by
//!   `Metadata.Remove`, which validates and converts nothing, so that a broken conversion webhook keeps no owner.
//! * A collection continues the trace of the deletion: each reconcile has the cause of the event that woke it.
//! * A stream that breaks is continued after the last revision. If that is too old, the graph is built anew; owners
//!   that went in the meantime are then not known, and their dependants are looked at.
//! * Differences from upstream: cycles are searched in the graph and not guessed from one dependant that waits; a
//!   dependant with an owner of an unknown kind is looked at again after five minutes.

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
