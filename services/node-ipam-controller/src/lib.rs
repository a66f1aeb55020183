//! The controller that assigns a range of Pod addresses to every Node (upstream: the RangeAllocator of
//! `pkg/controller/nodeipam`).
//!
//! ```text
//! all Nodes, and what was planned in this term ─▶ ranges in use ─▶ the lowest free one for each Node without ─▶ podCIDR, podCIDRs
//!                                                 the Service ranges are left out
//! ```
//! All Nodes are one key, so that each decision sees all of them. No range is given twice:
//! * A range that was planned for a Node stays reserved for it, whatever the answer to the write was,
//!   until the caches show the Node with a range or without its uid.
//! * A new leader's caches have all that was committed before its term, and later writes of former leaders are fenced.
//! * A patch names the uid of its Node, and the gateway refuses to change a range that is set.
//!
//! Unlike upstream, several ranges of IPv4 are used one after the other, and the lowest free range is given instead of
//! the next one after the last. A range that somebody else writes to a Node at the same moment is not known yet, as
//! upstream: leave `podCIDR` to this controller.

mod act;
mod memory;
mod metrics;
mod node;
mod plan;
mod pool;
mod reconciler;
mod settings;

pub use node::NodeView;
pub use plan::{Action, Candidate, World, plan};
pub use pool::{Occupied, Pool};
pub use reconciler::{CONTROLLER, Ranges, controller};
pub use settings::NodeIpam;
