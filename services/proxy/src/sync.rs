//! The loop that programs what has changed, in one transaction at a time. Changes that arrive meanwhile wait for the
//! next one together.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanBuilder;
use setpoint_controller::decision_log::Note;
use setpoint_controller::{DecisionLog, Queue, Reader, Ticket};
use setpoint_host::Check;
use setpoint_model::Key;
use setpoint_proto::Cause;
use setpoint_proto::trace::now_ns;
use setpoint_telemetry::Span;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{error, info};

use crate::backend::{Backend, Kind};
use crate::health::{HealthCheck, Servers, health_check};
use crate::ledger::Changes;
use crate::metrics::Metrics;
use crate::{NodeView, Place, ServicePlan, ServiceView, SliceView, World, account, plan};

/// The largest number of Services of a transaction.
const BATCH: usize = 1_000_000;
/// The first and the longest wait after a transaction that failed.
const RETRY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];
/// The number of names in the attribute of a span.
const NAMES: usize = 20;

/// Programs Services as the caches have them.
pub struct Syncer<B> {
    /// Where they are programmed.
    pub backend: B,
    /// The cache of Services.
    pub services: Reader<ServiceView>,
    /// The cache of EndpointSlices.
    pub slices: Reader<SliceView>,
    /// The cache of Nodes.
    pub nodes: Reader<NodeView>,
    /// The log of what was programmed, and when.
    pub decision_log: DecisionLog,
    /// The Services that have changed.
    pub queue: Queue<Key>,
    /// The place of the proxy.
    pub place: watch::Receiver<Arc<Place>>,
    /// Whether addresses of `externalIPs` are answered.
    pub external_ips: bool,
    /// The period of checks.
    pub period: Duration,
    /// Passes while everything is programmed.
    pub check: Check,
    /// The health checks of Services.
    pub health: Servers,
    /// The metrics.
    pub metrics: Metrics,
}

/// The changes of a transaction.
#[derive(Default)]
struct Batch {
    /// The plans to program.
    changes: Changes,
    /// The health checks of the same Services.
    checks: BTreeMap<Key, Option<HealthCheck>>,
    /// When the endpoints of Services last changed.
    times: HashMap<Key, Timestamp>,
    /// The records of the Services with their numbers of steps.
    notes: Vec<(Note, usize)>,
}

impl<B: Backend> Syncer<B> {
    /// Programs all Services, and then those that change, until the queue is closed.
    ///
    /// The caches must be complete: a table that lacks Services would replace one that has them.
    pub async fn run(&mut self) {
        let mut place = Arc::default();
        let mut changed = Some(self.moved(&mut place).await);
        while let Some(tickets) = changed {
            self.transact(tickets, &mut place).await;
            changed = self.next(&mut place).await;
        }
    }

    /// Waits for changes; `None` at the end.
    async fn next(&mut self, place: &mut Arc<Place>) -> Option<Vec<Ticket<Key>>> {
        let mut watched = self.place.clone();
        loop {
            tokio::select! {
                tickets = self.queue.next_batch(BATCH, |_| ()) => return tickets,
                Ok(()) = watched.changed() => return Some(self.moved(place).await),
                () = sleep(self.period) => {
                    self.health.retry();
                    if !self.backend.check().await {
                        return Some(Vec::new());
                    }
                }
            }
        }
    }

    /// Takes the newest place, and returns all Services that have no ticket yet: what is programmed is for one place.
    async fn moved(&mut self, place: &mut Arc<Place>) -> Vec<Ticket<Key>> {
        *place = Arc::clone(&self.place.borrow_and_update());
        let all = self.services.list();
        all.iter()
            .for_each(|service| self.queue.add(service.meta.key.clone(), None));
        self.take_queued().await
    }

    /// Returns what is queued, perhaps nothing.
    async fn take_queued(&self) -> Vec<Ticket<Key>> {
        match self.queue.is_empty() {
            true => Vec::new(),
            false => self
                .queue
                .next_batch(BATCH, |_| ())
                .await
                .unwrap_or_default(),
        }
    }

    /// Programs the Services of tickets, and repeats that until it succeeds or the queue is closed.
    async fn transact(&mut self, mut tickets: Vec<Ticket<Key>>, place: &mut Arc<Place>) {
        let mut wait = RETRY[0];
        loop {
            tickets.iter_mut().for_each(Ticket::catch_up);
            let Batch {
                changes,
                checks,
                times,
                notes,
            } = self.batch(&tickets, place);
            let (begin, began_ns) = (Instant::now(), now_ns());
            let outcome = self.backend.sync(place, changes).await;
            record(&tickets, &outcome, began_ns);
            match outcome {
                Ok(kind) => {
                    self.health.apply(checks);
                    if kind != Kind::Nothing {
                        account::end(notes, None);
                    }
                    self.succeeded(kind, begin.elapsed(), &tickets, &times);
                    tickets.into_iter().for_each(|ticket| ticket.done(None));
                    return;
                }
                Err(why) => {
                    account::end(notes, Some(&why.to_string()));
                    error!(error = %why, "Services are not programmed, and are tried again");
                    self.metrics.failed();
                    self.check.fail(why.to_string());
                    self.health.set_healthy(false);
                }
            }
            sleep(wait).await;
            wait = wait.saturating_mul(2).min(RETRY[1]);
            if self.place.has_changed().unwrap_or(false) {
                tickets.extend(self.moved(place).await);
            }
        }
    }

    /// Returns what to program for the Services of tickets.
    fn batch(&self, tickets: &[Ticket<Key>], place: &Arc<Place>) -> Batch {
        let mut batch = Batch::default();
        for ticket in tickets {
            let key = &ticket.key;
            let world = self.services.get(key);
            let world = world.map(|service| self.world(service, place));
            let changed = world.iter().flat_map(|world| &world.slices);
            let changed = changed.filter_map(|slice| slice.changed).max();
            batch
                .times
                .extend(changed.map(|changed| (key.clone(), changed)));
            let check = world.as_ref().and_then(health_check);
            batch.checks.insert(key.clone(), check);
            let new = world.as_ref().map(|world| Arc::new(plan(world)));
            batch.notes.push(self.note(ticket, world, new.as_deref()));
            batch.changes.insert(key.clone(), new);
        }
        batch
    }

    /// Begins the record of a Service.
    fn note(
        &self,
        ticket: &Ticket<Key>,
        world: Option<World>,
        plan: Option<&ServicePlan>,
    ) -> (Note, usize) {
        let mut note = self.decision_log.open(ticket);
        let (Some(world), Some(plan)) = (world, plan) else {
            return (note, 0);
        };
        note.about(&world.service.meta);
        let endpoints = world.slices.iter().flat_map(|slice| &slice.endpoints);
        let simulated = endpoints.filter(|one| {
            let node = self.nodes.get(&Key::new("", &*one.node));
            node.is_some_and(|node| node.simulated)
        });
        let simulated = simulated.filter_map(|one| one.address).collect();
        let lines = account::lines(plan, &simulated);
        let count = lines.len();
        for line in lines {
            note.say(
                line,
                "its ports, its endpoints or the nodes have changed",
                None,
            );
        }
        (note, count)
    }

    fn world(&self, service: Arc<ServiceView>, place: &Arc<Place>) -> World {
        let mut slices = self.slices.tagged(&service.meta.key.name);
        slices.retain(|slice| slice.service.as_ref() == Some(&service.meta.key));
        World {
            service,
            slices,
            place: Arc::clone(place),
            external_ips: self.external_ips,
        }
    }

    fn succeeded(
        &self,
        kind: Kind,
        took: Duration,
        tickets: &[Ticket<Key>],
        times: &HashMap<Key, Timestamp>,
    ) {
        self.check.pass();
        self.health.set_healthy(true);
        self.metrics.synced(kind, took);
        if kind == Kind::Nothing {
            return;
        }
        for ticket in tickets.iter().filter(|ticket| !ticket.causes.is_empty()) {
            let changed = times.get(&ticket.key).copied();
            self.metrics
                .programmed(changed, ticket.waits.queued.elapsed());
        }
        info!(
            kind = kind.name(),
            services = names(tickets),
            ?took,
            "programmed"
        );
    }
}

/// Records the span of a transaction, unless it had nothing to do: it continues the youngest trace of its causes, and
/// links the others.
fn record<E: Display>(tickets: &[Ticket<Key>], outcome: &Result<Kind, E>, began_ns: i64) {
    let result = match outcome {
        Ok(Kind::Nothing) => return,
        Ok(kind) => kind.name(),
        Err(_) => "error",
    };
    let causes: Vec<&Cause> = tickets.iter().flat_map(|ticket| &ticket.causes).collect();
    let rank = |cause: &&&Cause| {
        (
            cause.traceparent.is_some(),
            cause.began_ns,
            cause.written_ns,
        )
    };
    let parent = causes.iter().max_by_key(rank).copied();
    let count = i64::try_from(tickets.len()).unwrap_or(i64::MAX);
    let attributes = [
        KeyValue::new("setpoint.object", names(tickets)),
        KeyValue::new("setpoint.services", count),
        KeyValue::new("setpoint.outcome", result),
    ];
    let began = Duration::from_nanos(began_ns.try_into().unwrap_or_default());
    let builder = SpanBuilder::from_name("program")
        .with_start_time(UNIX_EPOCH + began)
        .with_attributes(attributes);
    let span = Span::start(builder, parent.and_then(|cause| cause.traceparent));
    span.link(causes.into_iter().filter(|cause| Some(*cause) != parent));
    if let Err(why) = outcome {
        span.set_error(why.to_string());
    }
}

/// Returns the names of the first Services, and the number of the others.
fn names(tickets: &[Ticket<Key>]) -> String {
    let names: BTreeMap<_, _> = tickets
        .iter()
        .map(|one| (one.key.to_string(), ()))
        .collect();
    let first: Vec<_> = names.keys().take(NAMES).cloned().collect();
    match names.len().saturating_sub(NAMES) {
        0 => first.join(" "),
        more => format!("{} and {more} more", first.join(" ")),
    }
}
