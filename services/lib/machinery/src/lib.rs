//! How any controller runs: gateway client, informer, queue, barrier, rounds, election, events.
//!
//! ```text
//! watch ─▶ informer ─▶ queue ─▶ worker: barrier → observe → plan → act… → status ─▶ gateway
//!             │ cache, indexes           (one key at a time, causes collected)
//!             └▶ readers
//! ```

pub mod barrier;
mod brief;
mod cascade;
mod channel;
pub mod controller;
pub mod election;
pub mod events;
mod fence;
pub mod gateway;
pub mod informer;
pub mod journal;
pub mod metrics;
mod ownership;
mod plan;
mod presence;
pub mod queue;
mod reconciler;
mod replica;
mod round;
mod tasks;
mod view;
mod written;

pub use barrier::Barrier;
pub use cascade::Cascade;
pub use controller::Controller;
pub use election::Term;
pub use events::Recorder;
pub use fence::Fence;
pub use gateway::Gateway;
pub use informer::{Delta, Informer, Reader};
pub use journal::{Journal, Subject};
pub use ownership::{Claim, Created, Owns, claims, owners, reference};
pub use plan::{Outcome, Plan, Step};
pub use presence::{Presence, reachable};
pub use queue::{Queue, Ticket};
pub use reconciler::{Inputs, Reconciler};
pub use replica::Replica;
pub use setpoint_task::Backoff;
pub use tasks::Tasks;
pub use view::{View, Whole};
pub use written::{Receipt, Written};
