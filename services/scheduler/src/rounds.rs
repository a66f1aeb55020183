//! The scheduler's round: take the Pods that wait, decide on all of them at once, bind them side by side.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use setpoint_machinery::election::Term;
use setpoint_machinery::events::Recorder;
use setpoint_machinery::gateway::{Gateway, Receipt};
use setpoint_machinery::queue::{Queue, Ticket};
use setpoint_machinery::{Reader, trace};
use setpoint_model::{Key, Revision};
use setpoint_proto::{ApiError, Reason};
use tracing::{Instrument as _, Span, debug, info, info_span, warn};

use crate::backlog::{Backlog, LONGEST_WAIT};
use crate::doubts::Doubts;
use crate::metrics;
use crate::node::NodeView;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::settings::Settings;
use crate::world::observe;
use crate::act::act;

/// How long a round waits for the caches to show the bindings of the one before it.
const CATCH_UP: Duration = Duration::from_secs(10);

/// What every round of one process shares.
pub struct Scheduler {
    /// Pods that may need a node.
    pub queue: Queue<Key>,
    /// Pods that fit nowhere.
    pub backlog: Backlog,
    /// Bindings that nobody answered for.
    pub doubts: Doubts,
    /// The Pods.
    pub pods: Reader<PodView>,
    /// The nodes.
    pub nodes: Reader<NodeView>,
    /// Tells people.
    pub events: Recorder,
    /// As set.
    pub settings: Settings,
}

impl Scheduler {
    /// Schedules until the term is lost or the queue closed.
    ///
    /// # Errors
    /// When the caches cannot be brought up to date with what the last leader wrote.
    pub async fn lead(&self, gateway: Gateway, term: &Term) {
        let mut written = Revision::default();
        loop {
            let tickets = tokio::select! {
                biased;
                () = term.lost.cancelled() => return,
                tickets = self.batch() => tickets,
            };
            if tickets.is_empty() {
                return;
            }
            if tokio::time::timeout(CATCH_UP, self.pods.reach(written)).await.is_err() {
                warn!(%written, "the cache is behind our own writes; looking again");
                tickets.into_iter().for_each(Ticket::retry);
                continue;
            }
            written = written.max(self.round(&gateway, tickets).await);
        }
    }

    /// All keys that wait now, up to the batch's size; empty once the queue is closed.
    async fn batch(&self) -> Vec<Ticket<Key>> {
        let Some(first) = self.queue.next().await else {
            return Vec::new();
        };
        let mut tickets = vec![first];
        while tickets.len() < self.settings.batch {
            match self.queue.next().now_or_never() {
                Some(Some(ticket)) => tickets.push(ticket),
                _ => break,
            }
        }
        tickets
    }

    /// Observe, plan, act. Answers the highest revision that it wrote.
    async fn round(&self, gateway: &Gateway, tickets: Vec<Ticket<Key>>) -> Revision {
        let started = Instant::now();
        let (pending, mut tickets) = self.pending(tickets);
        if pending.is_empty() {
            return Revision::default();
        }
        let world = observe(&self.nodes, &self.pods, &self.doubts, pending, Timestamp::now());
        let plan = plan(&world);
        metrics::pending(self.queue.len(), self.backlog.len());
        let writes = plan.steps.into_iter().filter_map(|step| {
            let ticket = tickets.remove(&step.action.pod().meta.key)?;
            Some(self.carry_out(gateway, step.action, step.because, ticket, world.now))
        });
        let writes: Vec<_> = writes.collect();
        let revisions = futures::stream::iter(writes)
            .buffer_unordered(self.settings.concurrency)
            .fold(Revision::default(), |highest, one| async move { highest.max(one) });
        let highest = revisions.await;
        // Keys without a decision (gated, or being deleted) are done: their next change brings them back.
        tickets.into_values().for_each(|ticket| ticket.done(None));
        metrics::round(started.elapsed());
        highest
    }

    /// The Pods behind the tickets that do need a node; the other tickets are done.
    fn pending(
        &self,
        tickets: Vec<Ticket<Key>>,
    ) -> (Vec<Arc<PodView>>, HashMap<Key, Ticket<Key>>) {
        let mut pending = Vec::new();
        let mut kept = HashMap::new();
        for ticket in tickets {
            match self.pods.get(&ticket.key).filter(|pod| self.is_ours(pod)) {
                Some(pod) => {
                    pending.push(pod);
                    kept.insert(ticket.key.clone(), ticket);
                }
                None => {
                    self.backlog.forget(&ticket.key);
                    ticket.done(None);
                }
            }
        }
        (pending, kept)
    }

    fn is_ours(&self, pod: &PodView) -> bool {
        let wants = pod.wants.as_ref();
        wants.is_some_and(|wants| wants.scheduler == self.settings.scheduler_name)
    }

    async fn carry_out(
        &self,
        gateway: &Gateway,
        action: Action,
        because: &'static str,
        ticket: Ticket<Key>,
        now: Timestamp,
    ) -> Revision {
        let span = info_span!("schedule", k8s.pod.name = %ticket.key.name, k8s.namespace.name = %ticket.key.namespace, because, node = tracing::field::Empty, otel.status_code = tracing::field::Empty);
        trace::follow(&span, &ticket.causes);
        let result = act(gateway, &self.events, &action, now).instrument(span.clone()).await;
        self.conclude(&span, &action, ticket, result)
    }

    /// What a finished action means for its Pod's key.
    fn conclude(
        &self,
        span: &Span,
        action: &Action,
        ticket: Ticket<Key>,
        result: Result<Option<Receipt>, ApiError>,
    ) -> Revision {
        let pod = action.pod();
        match (&result, action) {
            (Ok(_), Action::Bind { node, .. }) => {
                span.record("node", node.as_str());
                info!(parent: span, pod = %pod.meta.key, %node, "bound");
                self.settle(pod);
                metrics::scheduled(pod, Timestamp::now());
                ticket.done(None);
            }
            (Ok(_), Action::Refuse { message, .. }) => {
                info!(parent: span, pod = %pod.meta.key, %message, "unschedulable");
                metrics::unschedulable();
                self.backlog.refuse(&pod.meta.key);
                ticket.done(Some(LONGEST_WAIT));
            }
            (Err(error), _) => self.fail(span, action, ticket, error),
        }
        let receipt = result.ok().flatten();
        receipt.map_or_else(Revision::default, |receipt| receipt.revision)
    }

    fn fail(&self, span: &Span, action: &Action, ticket: Ticket<Key>, error: &ApiError) {
        let pod = action.pod();
        span.record("otel.status_code", "ERROR");
        match (error.reason, action) {
            // The Pod changed under us: whatever it is now comes by the watch.
            (Reason::Conflict | Reason::NotFound, _) => {
                debug!(parent: span, pod = %pod.meta.key, %error, "the Pod is no longer as observed");
                self.doubts.resolve(pod);
            }
            (Reason::Timeout | Reason::ServiceUnavailable, Action::Bind { node, .. }) => {
                warn!(parent: span, pod = %pod.meta.key, %error, "nobody answered; the binding may still be made");
                self.doubts.add(pod, node);
            }
            _ => warn!(parent: span, pod = %pod.meta.key, %error, "failed; trying again"),
        }
        metrics::failed();
        ticket.retry();
    }

    fn settle(&self, pod: &PodView) {
        self.backlog.forget(&pod.meta.key);
        self.doubts.resolve(pod);
    }
}
