//! The scheduler's round: take the Pods that wait, decide on all of them at once, bind them side by side.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::ready;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use parking_lot::Mutex;
use setpoint_controller::decision_log::{DecisionLog, Note};
use setpoint_controller::{Cascade, Client, Queue, Reader, Receipt, Recorder, Step, Ticket};
use setpoint_model::{Key, Revision};
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::Verdict;
use setpoint_task::catch_panic;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::act::act;
use crate::backlog::{Backlog, LONGEST_WAIT, Observed, Refusal};
use crate::doubts::{Doubts, is_in_doubt};
use crate::metrics;
use crate::node::NodeView;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::settings::Settings;
use crate::world::observe;

/// The time limit of the wait for the caches to show the bindings of the cycle before.
const CATCH_UP: Duration = Duration::from_secs(10);

/// A write was refused since the term under which it was made is over.
struct Fenced;

/// The start of a round.
#[derive(Clone, Copy)]
struct Began {
    looked: Instant,
    now: Timestamp,
    observed: Observed,
}

/// The state that the scheduling cycles of one process share.
pub struct Scheduler {
    /// Pods that may need a node.
    pub queue: Queue<Key>,
    /// Pods that fit nowhere.
    pub backlog: Backlog,
    /// Bindings that nobody answered for.
    pub doubts: Doubts,
    /// The highest revision that it wrote and that the caches may not hold yet.
    pub written: Mutex<Revision>,
    /// The Pods.
    pub pods: Reader<PodView>,
    /// The nodes.
    pub nodes: Reader<NodeView>,
    /// Tells people.
    pub events: Recorder,
    /// The log of its decisions.
    pub decision_log: DecisionLog,
    /// As set.
    pub settings: Settings,
}

impl Scheduler {
    /// Schedules until `stop`, or until a write is refused since another leads.
    pub async fn run(&self, gateway: &Client, stop: &CancellationToken) {
        while let Some(Some(tickets)) = stop.run_until_cancelled(self.batch()).await {
            let written = *self.written.lock();
            if timeout(CATCH_UP, self.pods.reach(written)).await.is_err() {
                warn!(%written, "the cache lags behind own writes");
                tickets.into_iter().for_each(Ticket::retry);
                continue;
            }
            // Reached, or lost by a store that was restored: not to be waited for again.
            *self.written.lock() = Revision::default();
            if let Err(Fenced) = self.round(gateway, tickets).await {
                return warn!("another leads: a write was fenced off");
            }
        }
    }

    /// The Pods that are first by priority, up to the batch's size; at least one.
    async fn batch(&self) -> Option<Vec<Ticket<Key>>> {
        let turn = |key: &Key| self.pods.get(key).map(|pod| pod.turn());
        self.queue.next_batch(self.settings.batch, turn).await
    }

    /// Observe, plan, act.
    async fn round(&self, gateway: &Client, tickets: Vec<Ticket<Key>>) -> Result<(), Fenced> {
        let looked = Instant::now();
        let observed = self.backlog.begin(tickets.iter().map(|ticket| &ticket.key));
        let (pending, mut tickets) = self.pending(tickets);
        if pending.is_empty() {
            return Ok(());
        }
        let world = observe(
            &self.nodes,
            &self.pods,
            &self.doubts,
            pending,
            Timestamp::now(),
        );
        let plan = plan(&world);
        let writes = plan.steps.into_iter().filter_map(|step| {
            let ticket = tickets.remove(&step.action.pod().meta.key)?;
            let mut note = self.decision_log.open(&ticket);
            describe(&mut note, &step.action, step.because, world.nodes.len());
            let began = Began {
                looked,
                now: world.now,
                observed,
            };
            let action = step.action.clone();
            let carried_out = self.carry_out(gateway, step, ticket, note, began);
            Some(self.guard(action, carried_out))
        });
        let writes: Vec<_> = writes.collect();
        let all = futures::stream::iter(writes)
            .buffer_unordered(self.settings.concurrency)
            .try_for_each(|()| ready(Ok(())))
            .await;
        for (key, ticket) in tickets {
            let pod = world.pending.iter().find(|pod| pod.meta.key == key);
            self.pass_over(pod.is_some_and(|pod| pod.schedulable().is_some()), ticket);
        }
        all
    }

    /// Settles a Pod without a decision. It needed none (it is gated, or being deleted), so that its next change brings it
    /// back; or deciding on it has panicked, which the others are not to suffer from.
    fn pass_over(&self, panicked: bool, ticket: Ticket<Key>) {
        if panicked {
            self.backlog.abandon(&ticket.key);
            ticket.retry();
        } else {
            self.backlog.forget(&ticket.key);
            ticket.done(None);
        }
    }

    /// Carries out an action. If that panics, its ticket counts as failed, and it is unknown whether a binding was made.
    async fn guard(
        &self,
        action: Action,
        carried_out: impl Future<Output = Result<(), Fenced>>,
    ) -> Result<(), Fenced> {
        if let Ok(ended) = catch_panic("schedule", carried_out).await {
            return ended;
        }
        self.backlog.abandon(&action.pod().meta.key);
        if let Action::Bind { pod, node, .. } = &action {
            self.doubts.add(pod, node);
        }
        Ok(())
    }

    /// The Pods behind the tickets that do need a node; the other tickets are done.
    fn pending(&self, tickets: Vec<Ticket<Key>>) -> (Vec<Arc<PodView>>, HashMap<Key, Ticket<Key>>) {
        let mut pending = Vec::new();
        let mut kept = HashMap::new();
        for ticket in tickets {
            match self.pods.get(&ticket.key).filter(|pod| self.is_ours(pod)) {
                Some(pod) => {
                    pending.push(pod);
                    kept.insert(ticket.key.clone(), ticket);
                }
                None => {
                    self.settle(&ticket.key);
                    ticket.done(None);
                }
            }
        }
        (pending, kept)
    }

    /// Whether it waits for a node from this scheduler.
    pub fn is_ours(&self, pod: &PodView) -> bool {
        let wants = pod.wants.as_ref();
        wants.is_some_and(|wants| wants.scheduler == self.settings.scheduler_name)
    }

    async fn carry_out(
        &self,
        gateway: &Client,
        step: Step<Action>,
        ticket: Ticket<Key>,
        mut note: Note,
        began: Began,
    ) -> Result<(), Fenced> {
        let Step { action, because } = step;
        let round = SpanBuilder::from_name("schedule")
            .with_kind(SpanKind::Client)
            .with_attributes([KeyValue::new("because", because)]);
        let cascade = Cascade::begin(round, &ticket, began.looked);
        cascade.about("pod", &action.pod().meta);
        note.belongs(&cascade);
        let acted = act(gateway, &self.events, &action, began.now);
        let result = cascade.run(acted).await;
        let outcome = match (&result, &action) {
            (Ok(_), Action::Bind { .. }) => "bound",
            (Ok(_), Action::Refuse { .. }) => "unschedulable",
            (Err(_), _) => "error",
        };
        cascade.ended(outcome, result.as_ref().err().map(|error| error as _));
        write_down(note, &action, &result);
        let profile = &self.settings.scheduler_name;
        metrics::attempted(profile, &action, result.as_ref().err(), began.now);
        let _entered = cascade.span().enter();
        self.conclude(&cascade, &action, ticket, result, began.observed)
    }

    /// Settles the key of a Pod after an action on it.
    fn conclude(
        &self,
        cascade: &Cascade,
        action: &Action,
        ticket: Ticket<Key>,
        result: Result<Receipt, ApiError>,
        observed: Observed,
    ) -> Result<(), Fenced> {
        let pod = action.pod();
        match (&result, action) {
            (Ok(_), Action::Bind { node, .. }) => {
                cascade.label("k8s.node.name", node.clone());
                info!(pod = %pod.meta.key, %node, "bound");
                let refused = self.backlog.refused(&ticket.key);
                let (refusals, since) = refused.unwrap_or((0, there_since(&ticket, pod)));
                metrics::placed(refusals + 1, since);
                self.settle(&ticket.key);
                ticket.done(None);
            }
            (Ok(_), Action::Refuse { message, .. }) => {
                info!(pod = %pod.meta.key, %message, "unschedulable");
                let wants = pod.wants.as_ref();
                let refusal = Refusal {
                    since: there_since(&ticket, pod),
                    resolvable: wants.is_some_and(|wants| wants.node.unsupported.is_empty()),
                };
                let wait = self.backlog.refuse(&pod.meta.key, refusal, observed);
                ticket.done(Some(wait));
            }
            (Err(error), _) => self.fail(action, ticket, error),
        }
        match result {
            Err(error) if error.is_fenced() => Err(Fenced),
            result => {
                let mut written = self.written.lock();
                *written = written.max(result.unwrap_or_default().revision);
                Ok(())
            }
        }
    }

    fn fail(&self, action: &Action, ticket: Ticket<Key>, error: &ApiError) {
        let pod = action.pod();
        self.backlog.abandon(&ticket.key);
        match action {
            Action::Bind { node, .. } if is_in_doubt(error) => {
                warn!(pod = %pod.meta.key, %error, "the binding may still be made");
                self.doubts.add(pod, node);
            }
            // Others may have been refused for its place.
            Action::Bind { .. } => {
                debug!(pod = %pod.meta.key, %error, "not bound");
                self.backlog.wake(&self.queue);
            }
            Action::Refuse { .. } => debug!(pod = %pod.meta.key, %error, "not reported"),
        }
        ticket.retry();
    }

    /// The Pod's binding is known: it is bound, or gone. A doubtful one kept room on a node, which others may want.
    pub fn settle(&self, pod: &Key) {
        self.backlog.forget(pod);
        if self.doubts.resolve(pod) {
            self.backlog.wake(&self.queue);
        }
    }
}

/// Since when the Pod is there to be scheduled: the write that brought it here says so to the nanosecond, its own
/// timestamp to the second.
fn there_since(ticket: &Ticket<Key>, pod: &PodView) -> Timestamp {
    let cause = ticket.causes.first().filter(|cause| cause.written_ns > 0);
    let written = cause.and_then(|cause| Timestamp::from_nanosecond(cause.written_ns.into()).ok());
    written.or(pod.meta.created).unwrap_or_else(Timestamp::now)
}

/// Writes down what was decided, and on what grounds.
fn describe(note: &mut Note, action: &Action, because: &str, nodes: usize) {
    note.about(&action.pod().meta);
    match action {
        Action::Bind { node, score, .. } => {
            let chosen = Verdict {
                node: node.clone(),
                score: Some(*score),
                ..Verdict::default()
            };
            note.say(format!("Bind to {node}"), because, None);
            note.verdicts(vec![chosen], 0);
        }
        Action::Refuse {
            message, against, ..
        } => {
            let verdicts: Vec<_> = against
                .iter()
                .map(|(node, objections)| Verdict {
                    node: node.clone(),
                    objections: objections.iter().map(ToString::to_string).collect(),
                    score: None,
                })
                .collect();
            let more = nodes.saturating_sub(verdicts.len());
            note.say("Refuse".to_owned(), message, None);
            note.verdicts(verdicts, more);
        }
    }
}

/// Enters how it went.
fn write_down(note: Note, action: &Action, result: &Result<Receipt, ApiError>) {
    let failed = result.as_ref().err();
    let failed = failed.map(|error| format!("{}: {error}", error.reason.name()));
    match action {
        Action::Bind { .. } => note.close(failed, 1, None),
        Action::Refuse { .. } => note.close(failed, 0, Some(LONGEST_WAIT)),
    }
}

#[cfg(test)]
mod tests {
    use setpoint_controller::client;
    use setpoint_controller::queue::Limiter;
    use setpoint_proto::Reason;

    use super::*;

    fn scheduler() -> Scheduler {
        let gateway = Client::connect(&client::Settings::default(), "test");
        let gateway = gateway.expect("the address is a URI");
        Scheduler {
            queue: Queue::new("test", Limiter::default()),
            backlog: Backlog::default(),
            doubts: Doubts::default(),
            written: Mutex::default(),
            pods: gateway.informer().reader(),
            nodes: gateway.informer().reader(),
            events: Recorder::silent(),
            decision_log: DecisionLog::default(),
            settings: Settings::default(),
        }
    }

    /// Checks C2: a binding whose task panicked may have been made.
    #[tokio::test]
    async fn a_binding_that_panics_is_in_doubt_and_ends_nothing_else() {
        let (scheduler, pod) = (scheduler(), Arc::new(PodView::default()));
        let bind = || Action::Bind {
            pod: pod.clone(),
            node: "a".into(),
            score: 0,
        };
        let panicked = scheduler.guard(bind(), async { panic!("while binding") });
        assert!(panicked.await.is_ok());
        assert!(scheduler.doubts.resolve(&pod.meta.key));
        assert!(scheduler.guard(bind(), async { Ok(()) }).await.is_ok());
        let fenced = scheduler.guard(bind(), async { Err(Fenced) });
        assert!(fenced.await.is_err());
        assert!(!scheduler.doubts.resolve(&pod.meta.key));
    }

    #[tokio::test]
    async fn pods_of_another_scheduler_and_those_that_have_a_node_are_left_alone() {
        let of = |name: &str| PodView {
            wants: Some(Box::new(crate::pod::Wants {
                scheduler: name.into(),
                ..Default::default()
            })),
            ..Default::default()
        };
        let scheduler = scheduler();
        assert!(scheduler.is_ours(&of("default-scheduler")));
        assert!(!scheduler.is_ours(&of("other")));
        assert!(!scheduler.is_ours(&PodView::default()));
    }

    /// Checks C1 and F3: room that a failed binding gives back is for those that were refused for it.
    #[tokio::test(start_paused = true)]
    async fn a_binding_that_is_refused_wakes_others_and_one_in_doubt_does_not() {
        let (scheduler, pod) = (scheduler(), Arc::new(PodView::default()));
        let bind = Action::Bind {
            pod: pod.clone(),
            node: "a".into(),
            score: 0,
        };
        let waiting = Key::new("default", "waiting");
        let refuse = || {
            let refusal = Refusal {
                since: Timestamp::UNIX_EPOCH,
                resolvable: true,
            };
            let observed = scheduler.backlog.begin([&waiting]);
            scheduler.backlog.refuse(&waiting, refusal, observed);
        };
        let fail = async |reason| {
            refuse();
            scheduler.queue.add(pod.meta.key.clone(), None);
            let ticket = scheduler.queue.next().await.expect("it is open");
            scheduler.fail(&bind, ticket, &ApiError::new(reason, "so"));
            scheduler.backlog.counts(Instant::now()).0
        };
        assert_eq!(fail(Reason::Timeout).await, 0, "its room is taken");
        assert_eq!(fail(Reason::Conflict).await, 1);
        refuse();
        scheduler.settle(&pod.meta.key);
        let woken = scheduler.backlog.counts(Instant::now()).0;
        assert_eq!(woken, 1, "the doubt is resolved");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_without_a_decision_is_done_unless_deciding_panicked() {
        let scheduler = scheduler();
        let key = Key::new("default", "web");
        for (panicked, resting) in [(false, 0), (true, 1)] {
            scheduler.queue.add(key.clone(), None);
            let ticket = scheduler.queue.next().await.expect("it is open");
            scheduler.pass_over(panicked, ticket);
            assert_eq!(
                (scheduler.queue.len(), scheduler.queue.delayed()),
                (0, resting)
            );
        }
    }
}
