//! Enforces NetworkPolicies on connections from and to Pods of the nodes of this machine.
//!
//! ```text
//! watch: NetworkPolicies, Pods, Namespaces, Nodes ─▶ caches ─▶ plan ─▶ table: delta ─▶ netlink
//! ```
//! Rules are in a table of their own, beside that of Services, and see the address of an endpoint instead of that of
//! its Service. `plan` and the table are pure. Without a policy in the cluster there is no table, and Pods and
//! Namespaces are not watched.
//!
//! As upstream documents: connections between a Pod and its node are always allowed, and so are those of a Pod to
//! itself; connections that stand when a policy changes go on; Pods of the host's network are not restricted. While
//! there is any policy, a new Pod has no connections until this process knows its address.

mod block;
mod caches;
mod enforcer;
mod plan;
mod pod;
mod policy;
mod rules;
mod sets;
mod table;

pub use caches::{Caches, Informers, caches};
pub use enforcer::Enforcer;
pub use plan::{Plan, World, plan};
pub use pod::{NamespaceView, PodView};
pub use policy::{Allowed, DIRECTIONS, Direction, Peer, PolicyView, Port};
pub use sets::Set;
pub use table::Table;
