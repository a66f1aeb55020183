//! The machinery against a small gateway in the same process, in paused time.

mod barrier;
mod controller;
mod election;
mod events;
mod fake;
mod informer;
mod queue;
