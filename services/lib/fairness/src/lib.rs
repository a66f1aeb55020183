//! Priority and fairness of requests, without I/O (upstream: `util/flowcontrol`, KEP-1040).
//!
//! ```text
//!   request ──▶ matching: the first FlowSchema, by precedence ──▶ priority level, flow
//!                                                                     │
//!   work: seats ──▶ queue set of the level: a seat is free and it is the request's turn ──▶ execute
//!                     │   flow ─ dealer ─▶ hand of queues ─▶ the one with the least work waiting
//!                     └── its queue is full, or its wait ends ──▶ rejected, `Retry-After`
//! ```
//! A [`QueueSet`] dispatches by fair queuing: every queue with requests advances in the same virtual time, so that a
//! flow with few requests waits for the service of a few others, however many requests another flow has. The seats of
//! the levels are [`limits`]: their shares of those of the server, of which idle levels lend some to busy ones.
//!
//! Everything takes the time as an argument. Waiting, and waking who waits, is up to the caller.

mod allocation;
mod configuration;
mod dealer;
mod demand;
mod limits;
mod matching;
mod queue;
mod queue_set;
mod retry_after;
mod watch_counts;
mod work;

pub use configuration::{Configuration, LevelSpec, SchemaSpec, dangling};
pub use dealer::Dealer;
pub use demand::{Demand, Integrator, Observed};
pub use limits::{Adjusted, Adjustment, Limits, adjust, max_seats};
pub use matching::{Digest, Target, distinguisher, flow_hash, matches};
pub use queue_set::{
    Arrived, Bounds, Dispatched, Finished, QueueDump, QueueSet, Queuing, Rejected, RequestDump,
    Ticket, Totals,
};
pub use retry_after::RetryAfter;
pub use watch_counts::{WatchCounts, Watched};
pub use work::{ListRequest, Stats, Work, of_list, of_write};
