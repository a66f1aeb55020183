//! Audit: which requests are recorded, in which detail, and where.
//!
//! ```text
//! request ─▶ Policy::decide ─▶ Record (the events of one request, by stage) ─▶ Sink ┬▶ log (a file, rotated)
//!                                                                                   └▶ webhook (batches)
//! ```
//! Policies and events are those of `audit.k8s.io/v1`. A request hands its events over and goes on: each back end has a
//! queue that is bounded in events and in bytes, and encodes and writes in a thread or task of its own. What does not
//! fit is dropped and counted; a full disk or a webhook that hangs delays no request (upstream: the mode `batch`).
//!
//! 2026-11: we chose the mode `batch` for the log, too, over upstream's default `blocking`, because a disk that is slow
//! or full would stop the API. It would be wrong if losing a record were worse than refusing a request.

mod auditor;
mod body;
mod event;
mod json;
mod log;
mod matching;
mod metrics;
mod policy;
mod record;
mod sink;
mod validation;
mod webhook;

pub use auditor::Auditor;
pub use body::Body;
pub use event::{Event, Head, ObjectReference, User};
pub use log::{Log, LogOptions};
pub use matching::{Subject, SubjectResource};
pub use metrics::reloaded;
pub use policy::{Decision, Level, Policy, Rule, Stage, Stages};
pub use record::Record;
pub use sink::{BUFFER, Sink};
pub use validation::Error;
pub use webhook::{Batches, Post, Webhook};
