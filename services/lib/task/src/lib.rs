//! Background tasks that are restarted after a panic, and the delays between attempts.
//!
//! A panic must not end a process, and must not be lost either. [`catch_panic`] turns the panic of one unit of work into
//! an error; [`supervise`] restarts a task that is meant to run for as long as the process does.

mod backoff;
mod panic;
mod supervise;

pub use backoff::{Backoff, exponential};
pub use panic::{Panicked, catch_panic, catch_unwind};
pub use supervise::supervise;
