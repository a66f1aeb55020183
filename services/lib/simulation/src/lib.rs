//! The simulated API server of all controllers: the gateway over a store in memory, in one thread and in paused time,
//! and the processes that use it.
//!
//! ```text
//! process ─▶ wire ─▶ endpoint: faults of the process, turns of writes ─▶ gateway ─▶ store in memory ─▶ log
//! ```
//! Defaults, admission, validation, fences and watches are those of the gateway itself. Added is what tests want to
//! move: watches that lag or break, answers that are lost, processes that are frozen or crash between two writes, and
//! time.
//!
//! * Writes take turns: once nothing else can run, the first one in the order of processes and objects is carried out,
//!   which takes a millisecond. So the order of writes does not depend on how tasks are scheduled.
//! * Leases are written without a turn: renewals would fill the log.
//!
//! We chose the gateway over a second, smaller API server because each of its rules would have to be written twice. It
//! would be wrong if a test of a controller became slow by it: property tests of plans use `setpoint-objects`, which
//! has the rules of kinds and the store, but neither connections nor admission.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use this crate: a panic is a failed test"
)]

mod call;
mod endpoint;
mod faults;
mod log;
mod plans;
mod process;
mod simulation;
mod turns;

pub use call::{Call, kind, short};
pub use faults::Faults;
pub use log::{Change, Entry, Log, Planned, Refusal};
pub use plans::record_plans;
pub use simulation::Simulation;
