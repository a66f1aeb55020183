//! Supervision of background tasks, panics as errors, backoff, and common times.
//!
//! A panic must neither end the process nor go unnoticed. [`catch_panic`] turns a panic in a unit of work into an
//! error; [`supervise()`] restarts a task that should run as long as the process.

mod backoff;
mod panic;
mod supervise;
mod ticks;

pub use backoff::{Backoff, exponential};
pub use panic::{Panicked, catch_panic, catch_unwind};
pub use supervise::supervise;
pub use ticks::next_tick;
