//! Counts what the objects of namespaces with quotas use, and writes it to the quotas.
//!
//! ```text
//! quota, definition of a kind ─────────────────────▶ queue ─▶ live reads: quota, then numbers and pages of objects ─▶ status
//! stream of changes in namespaces with quotas ─▶ pause ─▶│
//! ```
//!
//! The gateway charges a write that uses more to `status.used`, in the transaction of the write. This controller
//! returns what is no longer used, and counts for a limit that is new. A count is written only to the version of the
//! quota that was read before the objects were: whatever is charged in between makes the write a conflict, after which
//! it is counted again. So no charge is lost, and `status.used` is never less than what is used.
//!
//! Nothing is cached but the quotas: objects that only count are counted by the gateway, and of the others never more
//! than a page is held. Without quotas nothing is watched.
//!
//! The gateway's plugin and this controller use `lib/model/src/quota`, upstream's evaluators of Pods, Services, claims,
//! ResourceClaims and numbers of objects.
//!
//! * A new limit is counted twice, since what is created before it is in `status.hard` is not charged.
//! * Objects that only count are counted by the gateway, without conversion (`Metadata.Count`); Pods, Services, claims
//!   and ResourceClaims are read page by page.
//! * While there are quotas, one stream (`Metadata.Watch` of their namespaces) says when to count: when objects that a
//!   quota counts come or go, and after changes of Pods, Services, claims and ResourceClaims, at most ten times a
//!   second and a tenth of the time. Everything is counted again after `resourcequota.sync_period`, and when a grace
//!   period ends after which a Pod does not count.
//! * Differences from upstream: a write that fails is charged nothing; a Pod that is being made smaller is counted as
//!   its spec says, at once; the devices of ResourceClaims are counted by their classes
//!   (`<class>.deviceclass.resource.k8s.io/devices`) and not as the extended resources of these.
//!
//! # Decisions
//!
//! * 2026-11: we chose one controller with a Lease over a count in each gateway, because every gateway would read what
//!   all of them write. Wrong if quota had to be returned where no controller-manager runs.

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
