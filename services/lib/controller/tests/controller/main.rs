//! The controller library against a gateway in the same process, in paused time.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod answers;
mod barrier;
mod batch;
mod causes;
mod clocks;
mod controller;
mod election;
mod events;
mod gateway;
mod informer;
mod leaders;
mod leading;
mod membership;
mod parameters;
mod queue;
mod server;
mod tls;
mod trace;
