//! The StatefulSet controller: keeps one Pod per ordinal, with a stable name and its own PersistentVolumeClaims.
//!
//! ```text
//! claim orphans ─▶ revision of the template ─▶ create and repair Pods ─▶ scale down ─▶ update
//!                                              lowest ordinal first      highest ordinal first
//! ```
//! Under `OrderedReady` each Pod waits for those before it: the first Pod that is not available ends the plan. Under
//! `Parallel` creates, repairs and deletes of all ordinals are planned at once; only updates are gradual.

mod act;
mod action;
mod claim;
mod plan;
mod pod;
mod reconciler;
mod rollout;
mod set;
mod status;
mod world;

pub use action::Action;
pub use claim::ClaimView;
pub use plan::{BURST, plan};
pub use pod::{new_claim, new_pod, repair};
pub use reconciler::{CONTROLLER, StatefulSets};
pub use set::{Retention, StatefulSetView, Strategy};
pub use status::status;
pub use world::World;
