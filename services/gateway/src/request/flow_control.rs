//! Priority and fairness: limits on concurrent requests, and fair queues for the others.
//!
//! ```text
//!             ┌ leader-election   Leases
//!   request ──┼ node-high         Nodes, and the Leases of nodes
//!             ├ workload-write    all other writes
//!             ├ workload-read     all other reads
//!             └ catch-all         discovery, OpenAPI and requests that name no kind
//!
//!   each level:  a seat is free ──────────────────────────▶ run, then pass the seat to the next flow
//!                none is ──▶ flow a │▢▢▢▢│  ┐
//!                            flow b │▢   │  ├ round robin: a, b, c, a, c, a …
//!                            flow c │▢▢  │  ┘
//!                the queue of the flow or the level is full, or the wait timed out ──▶ 429
//! ```
//!
//! The requests of a level never wait for those of another, so no load keeps a leader from renewing its Lease. A flow
//! is one client. Watches and logs take no seat, since they do not end.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::USER_AGENT;
use parking_lot::Mutex;
use prometheus::{HistogramVec, IntCounterVec, IntGauge, IntGaugeVec};
use setpoint_codec::Kind;
use setpoint_kinds::{self as kinds, PriorityLevel};
use setpoint_model::Verb;
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::metrics::{counters, gauges, histograms};

/// The timeout of waiting for a seat: a quarter of the request timeout, as in kube-apiserver.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest numbers of waiting requests, of one flow and of all flows of a level.
const FLOW_QUEUE: usize = 512;
const LEVEL_QUEUE: usize = 2048;
/// Seats of levels that fill up only if clients misbehave: each of some thousand nodes writes once in ten seconds.
const LEADER_ELECTION: usize = 32;
const NODE_HIGH: usize = 64;
const CATCH_ALL: usize = 32;

static REJECTED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Requests rejected because a queue was full or the wait for a seat timed out.";
    let name = "apiserver_flowcontrol_rejected_requests_total";
    counters(name, help, &["priority_level", "reason"])
});
static INQUEUE: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let name = "apiserver_flowcontrol_current_inqueue_requests";
    gauges(name, "Requests waiting for a seat.", &["priority_level"])
});
static EXECUTING: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let name = "apiserver_flowcontrol_current_executing_requests";
    gauges(name, "Requests being executed.", &["priority_level"])
});
static WAITED: LazyLock<HistogramVec> = LazyLock::new(|| {
    let name = "apiserver_flowcontrol_request_wait_duration_seconds";
    let help =
        "Seconds that requests waited for a seat. Requests that did not wait are not observed.";
    let buckets = [
        0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
    ];
    histograms(name, help, &["priority_level"], &buckets)
});

/// The priority levels.
#[derive(Debug)]
pub(crate) struct FlowControl {
    leader_election: Arc<Level>,
    node_high: Arc<Level>,
    workload_write: Arc<Level>,
    workload_read: Arc<Level>,
    catch_all: Arc<Level>,
}

impl FlowControl {
    /// Returns the levels, with these numbers of seats for other reads and writes.
    pub(crate) fn new(reads: usize, writes: usize) -> Self {
        Self {
            leader_election: Level::new("leader-election", LEADER_ELECTION),
            node_high: Level::new("node-high", NODE_HIGH),
            workload_write: Level::new("workload-write", writes),
            workload_read: Level::new("workload-read", reads),
            catch_all: Level::new("catch-all", CATCH_ALL),
        }
    }

    /// Waits for a seat for a request about `kind`. A watch takes none.
    ///
    /// # Errors
    /// `TooManyRequests` when a queue is full or the wait times out.
    pub(crate) async fn seat(
        &self,
        verb: Verb,
        kind: &Kind,
        namespace: &str,
        flow: Flow,
    ) -> Result<Option<Seat>, ApiError> {
        if verb == Verb::Watch {
            return Ok(None);
        }
        let own = kinds::find(kind).and_then(|rules| rules.priority_level(verb, namespace));
        let level = match own {
            Some(PriorityLevel::LeaderElection) => &self.leader_election,
            Some(PriorityLevel::NodeHigh) => &self.node_high,
            None if verb.writes() => &self.workload_write,
            None => &self.workload_read,
        };
        level.seat(flow).await.map(Some)
    }

    /// Waits for a seat for a request that names no kind.
    ///
    /// # Errors
    /// As [`Self::seat`].
    pub(crate) async fn catch_all(&self, flow: Flow) -> Result<Seat, ApiError> {
        self.catch_all.seat(flow).await
    }
}

/// The client of a request; flows are served round robin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flow {
    /// One connection: gRPC clients have a single one.
    Connection(Option<SocketAddr>),
    /// All connections of a user agent from an IP address.
    Program(Option<std::net::IpAddr>, Vec<u8>),
}

impl Flow {
    /// Returns the flow of an HTTP request.
    pub(crate) fn of(peer: Option<SocketAddr>, headers: &HeaderMap) -> Self {
        let agent = headers.get(USER_AGENT).map(|agent| agent.as_bytes());
        let mut agent = agent.unwrap_or_default().to_vec();
        agent.truncate(256);
        Self::Program(peer.map(|peer| peer.ip()), agent)
    }
}

/// The seats of a priority level, and the queues of requests that wait for one.
#[derive(Debug)]
struct Level {
    name: &'static str,
    seats: usize,
    state: Mutex<State>,
    executing: IntGauge,
    inqueue: IntGauge,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    waiting: usize,
    flows: HashMap<Flow, VecDeque<oneshot::Sender<Seat>>>,
    /// The flows with waiting requests, each once, in the order in which they are served.
    round_robin: VecDeque<Flow>,
}

impl Level {
    fn new(name: &'static str, seats: usize) -> Arc<Self> {
        Arc::new(Self {
            name,
            seats,
            state: Mutex::default(),
            executing: EXECUTING.with_label_values(&[name]),
            inqueue: INQUEUE.with_label_values(&[name]),
        })
    }

    async fn seat(self: &Arc<Self>, flow: Flow) -> Result<Seat, ApiError> {
        let waiter = {
            let mut state = self.state.lock();
            if state.taken < self.seats {
                state.taken += 1;
                return Ok(Seat::new(self));
            }
            state.enqueue(flow)
        };
        let Some(waiter) = waiter else {
            return Err(self.reject("queue-full"));
        };
        let began = Instant::now();
        self.inqueue.inc();
        let seat = timeout(QUEUE_TIMEOUT, waiter).await;
        self.inqueue.dec();
        let waited = WAITED.with_label_values(&[self.name]);
        waited.observe(began.elapsed().as_secs_f64());
        match seat {
            Ok(Ok(seat)) => Ok(seat),
            _ => Err(self.reject("time-out")),
        }
    }

    fn reject(&self, reason: &str) -> ApiError {
        REJECTED.with_label_values(&[self.name, reason]).inc();
        let message = "Too many requests, please try again later.";
        ApiError::new(Reason::TooManyRequests, message).with_details(StatusDetails {
            retry_after_seconds: 1,
            ..Default::default()
        })
    }

    /// Passes a free seat to the next request that still waits.
    fn release(self: &Arc<Self>) {
        loop {
            let waiter = {
                let mut state = self.state.lock();
                let Some(waiter) = state.next() else {
                    state.taken = state.taken.saturating_sub(1);
                    return;
                };
                waiter
            };
            match waiter.send(Seat::new(self)) {
                Ok(()) => return,
                // The request has been dropped; its seat must not be released a second time.
                Err(mut seat) => {
                    seat.level = None;
                    self.executing.dec();
                }
            }
        }
    }
}

impl State {
    /// Adds a waiter to the queue of a flow; returns `None` if the queue or the level is full.
    fn enqueue(&mut self, flow: Flow) -> Option<oneshot::Receiver<Seat>> {
        let queued = self.flows.get(&flow).map_or(0, VecDeque::len);
        if queued >= FLOW_QUEUE || self.waiting >= LEVEL_QUEUE {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        if queued == 0 {
            self.round_robin.push_back(flow.clone());
        }
        self.flows.entry(flow).or_default().push_back(sender);
        self.waiting += 1;
        Some(receiver)
    }

    /// Removes the first waiter of the next flow.
    fn next(&mut self) -> Option<oneshot::Sender<Seat>> {
        let flow = self.round_robin.pop_front()?;
        let queue = self.flows.get_mut(&flow)?;
        let waiter = queue.pop_front();
        self.waiting = self.waiting.saturating_sub(1);
        match queue.is_empty() {
            true => drop(self.flows.remove(&flow)),
            false => self.round_robin.push_back(flow),
        }
        waiter
    }
}

/// The right to execute a request. Dropping it passes it to the next waiter.
#[derive(Debug)]
pub(crate) struct Seat {
    level: Option<Arc<Level>>,
}

impl Seat {
    fn new(level: &Arc<Level>) -> Self {
        level.executing.inc();
        Self {
            level: Some(Arc::clone(level)),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(level) = self.level.take() {
            level.executing.dec();
            level.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    fn flow(name: &str) -> Flow {
        Flow::Program(None, name.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn flows_are_served_round_robin() {
        let level = Level::new("round-robin-test", 1);
        let busy = level.seat(flow("a")).await.unwrap();
        let mut first = pin!(level.seat(flow("a")));
        let mut second = pin!(level.seat(flow("a")));
        let mut other = pin!(level.seat(flow("b")));
        assert!(poll!(&mut first).is_pending());
        assert!(poll!(&mut second).is_pending());
        assert!(poll!(&mut other).is_pending());
        drop(busy);
        let seat = first.await.unwrap();
        assert!(poll!(&mut second).is_pending() && poll!(&mut other).is_pending());
        drop(seat);
        let seat = other.await.unwrap();
        assert!(poll!(&mut second).is_pending());
        drop(seat);
        drop(second.await.unwrap());
        assert_eq!(level.state.lock().taken, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_rejected_when_its_queue_is_full_or_its_wait_times_out() {
        let level = Level::new("refusal-test", 1);
        let busy = level.seat(flow("a")).await.unwrap();
        let waiting = futures::future::join_all((0..=FLOW_QUEUE).map(|_| level.seat(flow("a"))));
        let rejected = waiting.await;
        assert!(rejected.iter().all(|outcome| {
            let error = outcome.as_ref().unwrap_err();
            let details = error.details.as_deref().unwrap();
            error.reason == Reason::TooManyRequests && details.retry_after_seconds == 1
        }));
        let count = |reason| REJECTED.with_label_values(&["refusal-test", reason]).get();
        assert_eq!(count("time-out"), FLOW_QUEUE as u64);
        assert_eq!(count("queue-full"), 1);
        drop(busy);
        let seat = level.seat(flow("b")).await;
        assert!(seat.is_ok(), "seats of dropped requests are free again");
        assert_eq!(level.executing.get(), 1);
    }

    #[test]
    fn the_queues_of_a_level_are_limited_together() {
        let mut state = State::default();
        let full: Vec<_> = (0..LEVEL_QUEUE / FLOW_QUEUE)
            .flat_map(|n| vec![flow(&n.to_string()); FLOW_QUEUE])
            .map(|flow| state.enqueue(flow))
            .collect();
        assert!(full.iter().all(Option::is_some));
        assert!(state.enqueue(flow("another")).is_none());
    }

    #[tokio::test]
    async fn verb_kind_and_namespace_choose_the_level() {
        let control = FlowControl::new(1, 1);
        for (verb, resource, namespace, level) in [
            (
                Verb::Update,
                "leases.coordination.k8s.io",
                "kube-node-lease",
                "node-high",
            ),
            (
                Verb::Update,
                "leases.coordination.k8s.io",
                "default",
                "leader-election",
            ),
            (
                Verb::Get,
                "leases.coordination.k8s.io",
                "default",
                "leader-election",
            ),
            (Verb::Get, "nodes", "", "node-high"),
            (Verb::Patch, "nodes", "", "node-high"),
            (Verb::List, "nodes", "", "workload-read"),
            (Verb::Delete, "nodes", "", "workload-write"),
            (Verb::Get, "pods", "default", "workload-read"),
            (Verb::Create, "pods", "kube-node-lease", "workload-write"),
        ] {
            let kind = setpoint_codec::kinds().by_resource(resource).unwrap();
            let seat = control.seat(verb, kind, namespace, flow("a")).await;
            let taken = seat.unwrap().unwrap().level.as_ref().unwrap().name;
            assert_eq!(taken, level, "{verb:?} {resource} in {namespace:?}");
        }
    }

    #[tokio::test]
    async fn requests_about_leases_and_nodes_do_not_wait_for_others() {
        let control = FlowControl::new(1, 1);
        let kind = |name: &str| setpoint_codec::kinds().by_resource(name).unwrap();
        let pods = kind("pods");
        let seat =
            async |verb, kind, namespace| control.seat(verb, kind, namespace, flow("a")).await;
        let _read = seat(Verb::List, pods, "").await.unwrap();
        let _write = seat(Verb::Create, pods, "default").await.unwrap();
        let mut more = pin!(seat(Verb::Get, pods, "default"));
        assert!(poll!(&mut more).is_pending());
        let leases = kind("leases.coordination.k8s.io");
        assert!(seat(Verb::Update, leases, "setpoint-system").await.is_ok());
        assert!(seat(Verb::Update, leases, "kube-node-lease").await.is_ok());
        assert!(seat(Verb::Patch, kind("nodes"), "").await.is_ok());
        assert!(seat(Verb::Watch, pods, "").await.unwrap().is_none());
    }
}
