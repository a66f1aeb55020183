//! Routes to the Pods of other machines of the same network: packets to the range of a node go to its InternalIP.
//!
//! ```text
//! watch: Nodes ─▶ plan ─▶ difference from the routes of the kernel ─▶ ip
//! ```
//! The routes have a protocol number of their own. Of these, a proxy changes those that lie in the ranges of its
//! cluster, so that several clusters may share a machine. They stay when the process ends.

mod keeper;
mod kernel;
mod plan;

pub use keeper::Keeper;
pub use kernel::Kernel;
pub use plan::{Plan, Refused, Routes, plan};
