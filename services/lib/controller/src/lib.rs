//! Runs controllers: client of the gateway, informers, queue, barrier, runtime, election, Events.
//!
//! ```text
//! watch ─▶ informer ─▶ queue ─▶ worker: barrier → observe → plan → act… → status ─▶ gateway
//!             │ cache, indexes           (one key at a time, causes collected)
//!             └▶ readers
//! ```

pub mod barrier;
mod cascade;
mod channel;
pub mod client;
pub mod decision_log;
pub mod election;
pub mod events;
mod expiring_certificates;
mod hosted;
pub mod informer;
mod label;
mod membership;
pub mod metrics;
mod ownership;
mod plan;
pub mod queue;
mod reconciler;
mod replica;
pub mod runtime;

mod receipt;
mod tasks;
mod view;
mod volumes;

pub use barrier::Barrier;
pub use cascade::Cascade;
pub use client::Client;
pub use decision_log::{DecisionLog, ObjectRef};
pub use election::Term;
pub use events::Recorder;
pub use hosted::{AnyHosted, Configured, Hosted};
pub use informer::{Delta, Informer, Reader};
pub use membership::{Membership, name as lease_name, reachable};
pub use ownership::{Claim, Created, Owns, claims, owners, reference, selector};
pub use plan::{Outcome, Plan, Step};
pub use queue::{Queue, Ticket};
pub use receipt::{Receipt, Written};
pub use reconciler::{Inputs, Reconciler, StatusOf};
pub use replica::Replica;
pub use runtime::{Controller, QueueHandle};
pub use setpoint_model::Fence;
pub use setpoint_task::{Backoff, exponential};
pub use tasks::Tasks;
pub use view::{View, Whole, orphan_tag};
