//! Priority and fairness: how many requests are worked on at once, and in which order the others wait.
//!
//! ```text
//!             ┌ leader-election   Leases
//!   request ──┼ node-high         Nodes, and the Leases of nodes
//!             ├ workload-write    all other writes
//!             ├ workload-read     all other reads
//!             └ catch-all         discovery, OpenAPI and what names no kind
//!
//!   each level:  a seat is free ──────────────────────────▶ run, and give the seat to the next turn
//!                none is ──▶ flow a │▢▢▢▢│  ┐
//!                            flow b │▢   │  ├ turns: a, b, c, a, c, a …
//!                            flow c │▢▢  │  ┘
//!                its flow's queue or the level is full, or it waited too long ──▶ 429
//! ```
//!
//! A level's requests never wait for those of another, so no amount of work keeps a leader from its Lease. A flow is one
//! client: each has a turn before another has its second. Watches and logs take no seat, as they do not end.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::USER_AGENT;
use parking_lot::Mutex;
use prometheus::{HistogramVec, IntCounterVec, IntGauge, IntGaugeVec};
use setpoint_codec::Kind;
use setpoint_model::Verb;
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::kinds;
use crate::metrics::{counters, gauges, histograms};

/// The longest wait for a seat: a quarter of the request timeout, as in kube-apiserver.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Requests of one flow, and of all flows of a level, that may wait.
const FLOW_QUEUE: usize = 512;
const LEVEL_QUEUE: usize = 2048;
/// Seats of the levels that are never full unless a client renews what it should not: each of some thousand nodes writes
/// once in ten seconds.
const LEADER_ELECTION: usize = 32;
const NODE_HIGH: usize = 64;
const CATCH_ALL: usize = 32;

static REJECTED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Requests refused because too many others waited, or after having waited too long.";
    let name = "apiserver_flowcontrol_rejected_requests_total";
    counters(name, help, &["priority_level", "reason"])
});
static INQUEUE: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let name = "apiserver_flowcontrol_current_inqueue_requests";
    gauges(name, "Requests that wait for a seat.", &["priority_level"])
});
static EXECUTING: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    let name = "apiserver_flowcontrol_current_executing_requests";
    gauges(name, "Requests that have a seat.", &["priority_level"])
});
static WAITED: LazyLock<HistogramVec> = LazyLock::new(|| {
    let name = "apiserver_flowcontrol_request_wait_duration_seconds";
    let help = "Seconds that requests waited for a seat, those aside that did not wait.";
    let buckets = [
        0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
    ];
    histograms(name, help, &["priority_level"], &buckets)
});

/// A level of requests about certain kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriorityLevel {
    LeaderElection,
    NodeHigh,
}

/// Seats for requests, by level.
#[derive(Debug)]
pub(crate) struct FlowControl {
    leader_election: Arc<Level>,
    node_high: Arc<Level>,
    workload_write: Arc<Level>,
    workload_read: Arc<Level>,
    catch_all: Arc<Level>,
}

impl FlowControl {
    /// Returns levels of which those of users' reads and writes have so many seats.
    pub(crate) fn new(reads: usize, writes: usize) -> Self {
        Self {
            leader_election: Level::new("leader-election", LEADER_ELECTION),
            node_high: Level::new("node-high", NODE_HIGH),
            workload_write: Level::new("workload-write", writes),
            workload_read: Level::new("workload-read", reads),
            catch_all: Level::new("catch-all", CATCH_ALL),
        }
    }

    /// Waits for a seat for a request about `kind`; `None` for a watch, which needs none.
    ///
    /// # Errors
    /// `TooManyRequests` when too many others wait, or none was free in time.
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

    /// Waits for a seat for a request that is about no kind.
    ///
    /// # Errors
    /// As [`Self::seat`].
    pub(crate) async fn catch_all(&self, flow: Flow) -> Result<Seat, ApiError> {
        self.catch_all.seat(flow).await
    }
}

/// A client whose requests take turns with those of others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flow {
    /// A connection: programs that speak gRPC have one.
    Connection(Option<SocketAddr>),
    /// All connections of a program on a machine.
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

/// Seats and those who wait for one.
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
    /// Every flow that has somebody waiting, once, in the order of their turns.
    turns: VecDeque<Flow>,
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
            return Err(self.refuse("queue-full"));
        };
        let began = Instant::now();
        self.inqueue.inc();
        let seat = timeout(LONGEST_WAIT, waiter).await;
        self.inqueue.dec();
        let waited = WAITED.with_label_values(&[self.name]);
        waited.observe(began.elapsed().as_secs_f64());
        match seat {
            Ok(Ok(seat)) => Ok(seat),
            _ => Err(self.refuse("time-out")),
        }
    }

    fn refuse(&self, reason: &str) -> ApiError {
        REJECTED.with_label_values(&[self.name, reason]).inc();
        let message = "Too many requests, please try again later.";
        ApiError::new(Reason::TooManyRequests, message).with_details(StatusDetails {
            retry_after_seconds: 1,
            ..Default::default()
        })
    }

    /// Hands a seat that has become free to the next who still waits.
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
                // It has given up; its seat must not be released a second time.
                Err(mut seat) => {
                    seat.level = None;
                    self.executing.dec();
                }
            }
        }
    }
}

impl State {
    /// Queues one more of the flow, unless there is no room.
    fn enqueue(&mut self, flow: Flow) -> Option<oneshot::Receiver<Seat>> {
        let queued = self.flows.get(&flow).map_or(0, VecDeque::len);
        if queued >= FLOW_QUEUE || self.waiting >= LEVEL_QUEUE {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        if queued == 0 {
            self.turns.push_back(flow.clone());
        }
        self.flows.entry(flow).or_default().push_back(sender);
        self.waiting += 1;
        Some(receiver)
    }

    /// Takes the first of the flow whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Seat>> {
        let flow = self.turns.pop_front()?;
        let queue = self.flows.get_mut(&flow)?;
        let waiter = queue.pop_front();
        self.waiting = self.waiting.saturating_sub(1);
        match queue.is_empty() {
            true => drop(self.flows.remove(&flow)),
            false => self.turns.push_back(flow),
        }
        waiter
    }
}

/// The right to be worked on. Dropping it gives it to the next.
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
    async fn flows_take_turns_however_many_requests_one_of_them_has() {
        let level = Level::new("turns-test", 1);
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
    async fn who_waits_too_long_or_finds_no_room_is_refused() {
        let level = Level::new("refusal-test", 1);
        let busy = level.seat(flow("a")).await.unwrap();
        let waiting = futures::future::join_all((0..=FLOW_QUEUE).map(|_| level.seat(flow("a"))));
        let refused = waiting.await;
        assert!(refused.iter().all(|outcome| {
            let error = outcome.as_ref().unwrap_err();
            let details = error.details.as_deref().unwrap();
            error.reason == Reason::TooManyRequests && details.retry_after_seconds == 1
        }));
        let count = |reason| REJECTED.with_label_values(&["refusal-test", reason]).get();
        assert_eq!(count("time-out"), FLOW_QUEUE as u64);
        assert_eq!(count("queue-full"), 1);
        drop(busy);
        let seat = level.seat(flow("b")).await;
        assert!(seat.is_ok(), "nobody sits where nobody waits any more");
        assert_eq!(level.executing.get(), 1);
    }

    #[test]
    fn a_level_has_room_for_so_many_of_all_flows_together() {
        let mut state = State::default();
        let full: Vec<_> = (0..LEVEL_QUEUE / FLOW_QUEUE)
            .flat_map(|n| vec![flow(&n.to_string()); FLOW_QUEUE])
            .map(|flow| state.enqueue(flow))
            .collect();
        assert!(full.iter().all(Option::is_some));
        assert!(state.enqueue(flow("another")).is_none());
    }

    #[tokio::test]
    async fn the_level_of_a_request_follows_from_its_verb_and_its_kind() {
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
    async fn leases_and_nodes_do_not_wait_for_others() {
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
