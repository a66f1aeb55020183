//! Serves the names of a cluster's Services and Pods, and forwards questions about other names.
//!
//! ```text
//! informers ─▶ records ◀─ answer ◀─ server (UDP, TCP) ─▶ forward ─▶ cache, upstream servers
//! Lease ─▶ registration ─▶ the Service kube-dns and the slice of this replica
//! ```
//!
//! * `records/` and `answer/` are pure: objects to an index, and a question to records.
//! * `server/` bounds what clients can take: datagrams are answered as they come, connections and forwarded questions
//!   have limits, and no answer is longer than the client said it takes.
//! * `forward/` asks upstream servers, each for a bounded time, and keeps their answers.
//! * `registration/` makes the replica an endpoint of the Service when it is ready, and removes the endpoints of
//!   replicas that have ended.
//!
//! Answers come from the caches of informers, so that names resolve while no gateway is there. A replica is ready once
//! these are complete; before, questions about the cluster fail (SERVFAIL), which clients repeat elsewhere.
//!
//! 2026-11: we chose hickory-proto with a server of our own over hickory-server: its zones are trees of records, which
//! would be a second copy of each Service, and it bounds neither connections nor requests in flight. Wrong if DNSSEC or
//! transfers of zones are asked for.

mod answer;
mod forward;
mod metrics;
mod records;
mod registration;
mod server;
mod settings;
mod start;

pub use answer::{Answer, PodMode, Records, Zone, answer, expand};
pub use forward::{CacheSettings, ForwardSettings, Forwarder};
pub use records::{Index, NamespaceView, PodView, ServiceView, SliceView};
pub use registration::{Action, Renewals, Replica, World, plan};
pub use server::{Limits, Responder, Server, UDP_PAYLOAD};
pub use settings::Settings;
pub use start::start;

/// Runs the process of one replica.
#[tokio::main(worker_threads = 2)]
pub async fn main() -> std::process::ExitCode {
    setpoint_host::run("dns", start).await
}
