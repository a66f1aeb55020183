//! The controller of ServiceCIDRs, the ranges from which Services get their addresses (upstream:
//! `pkg/controller/servicecidrs`).
//!
//! ```text
//! a new range ─▶ finalizer ─▶ Ready
//! a deleted one ─▶ Ready False, Terminating   while a Service has an address of it that is in no other range
//!               ─▶ no finalizer               once none has, ten seconds after the deletion at the earliest
//! ```
//! Gateways give no address of a range that is being deleted. One that had not seen the deletion may have given one
//! shortly before: hence the ten seconds, as upstream, and a list of all Services before the finalizer is removed.
//!
//! Unlike upstream, addresses in use are those of the Services themselves, since the gateway makes no IPAddresses; and
//! a range that is being deleted itself covers no other one.

mod act;
mod address;
mod plan;
mod reconciler;
mod status;

pub use address::AddressView;
pub use plan::{Action, World, blocks, plan};
pub use reconciler::{CONTROLLER, RangeView, Ranges, controller};
pub use status::status;
