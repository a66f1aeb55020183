//! The objects of an API server in memory, for property tests of plans: without connections, tasks and waiting.
//!
//! A write passes the defaults, preparation and validation of `lib/kinds`, and commits to the store in memory of
//! `lib/store`. So revisions, generations, preconditions, finalizers and deletions are those of the gateway, and what a
//! plan writes must be valid. Admission plugins are left out, since they look at objects that such a test does not
//! have. Added is what tests want to move: caches that lag, a crash after a number of writes, and time.
//!
//! The methods are those of `setpoint_controller::Client`, so that applying an action reads as the controller's `act`.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use this crate: a panic is a failed test"
)]

mod deletion;
mod objects;
mod ownership;
mod past;
mod reconcile;
#[cfg(test)]
mod tests;
mod unvalidated;

pub use objects::{Objects, Stored};
pub use past::Past;
