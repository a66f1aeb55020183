//! The Job controller: runs the Pods of each Job until enough of them have succeeded, or too many have failed.
//!
//! A Pod belongs to a Job by its owner reference. It has a finalizer until its end is in the status of the Job, so that
//! each Pod is counted exactly once; the protocol is described in `tally.rs`.

mod act;
mod backoff;
mod events;
mod failure_policy;
mod finish;
mod indexes;
mod job;
mod plan;
mod pod;
mod reconciler;
mod scale;
mod status;
mod tally;
mod world;

pub use indexes::Indexes;
pub use job::{Ending, JobView};
pub use plan::{Action, BURST, Tracked, plan};
pub use pod::{Details, Failures, JobPodView, TRACKING};
pub use reconciler::{CONTROLLER, Jobs};
pub use status::status;
pub use world::{World, keys_of};
