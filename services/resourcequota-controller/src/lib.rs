//! Counts what the objects of namespaces with quotas use, and writes it to the quotas.
//!
//! ```text
//! quota, definition of a kind ─────────────────────▶ queue ─▶ live reads: quota, then numbers and pages of objects ─▶ status
//! stream of changes in namespaces with quotas ─▶ pause ─▶│
//! ```
//!
//! The gateway charges a write that uses more to `status.used`, in the transaction of the write. This controller returns what is
//! no longer used, and counts for a limit that is new. A count is written only to the version of the quota that was read before
//! the objects were: whatever is charged in between makes the write a conflict, after which it is counted again. So no charge
//! is lost, and `status.used` is never less than what is used.
//!
//! Nothing is cached but the quotas: objects that only count are counted by the gateway, and of the others never more than a
//! page is held. Without quotas nothing is watched.

mod follow;
mod pace;
mod plan;
mod reconciler;
mod settings;
mod status;
mod tally;

pub use plan::{World, plan};
pub use reconciler::{CONTROLLER, Quotas, controller};
pub use settings::Counting;
pub use status::status;
pub use tally::{Counted, Needs, Tally, concerns};
