//! The agent's rounds: one Pod at a time each, as many at once as there are workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use setpoint_controller::decision_log::{DecisionLog, Note};
use setpoint_controller::metrics::Reconciles;
use setpoint_controller::{Barrier, Cascade, Plan, Queue, Reader, Ticket};
use setpoint_model::{Key, Meta, pod as model};
use setpoint_proto::Reason;
use setpoint_proto::core::Pod;
use setpoint_task::{catch_panic, catch_unwind};
use setpoint_telemetry::Span;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::act::{Error, Hands};
use crate::ledger::Ledger;
use crate::metrics;
use crate::node::Node;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::runtime::Runtime;
use crate::status::status;
use crate::world::{Bound, Trouble, World};

/// More turns than any Pod needs from nothing to running; what is left after them waits for the next round.
const MOST_TURNS: usize = 16;
/// When to look again for what a Pod refers to and could not be found.
const TROUBLE: Duration = Duration::from_secs(10);

/// Brings the Pods of its nodes from what they are to what they should be.
pub struct Agent<R> {
    /// What it acts with.
    pub hands: Hands<R>,
    /// The nodes of this process, by name.
    pub nodes: HashMap<String, Node>,
    /// What is taken of them.
    pub ledger: Ledger,
    /// The Pods bound to them, and perhaps others.
    pub pods: Reader<PodView>,
    /// Makes a Pod rest until `pods` shows what was written for it.
    pub barrier: Barrier,
    /// What it did of late.
    pub decision_log: DecisionLog,
    /// The Pods that need a look.
    pub queue: Queue<Key>,
    /// Counts its rounds.
    pub rounds: Arc<Reconciles>,
}

impl<R: Runtime> Agent<R> {
    /// Works until `shutdown`, and finishes the rounds that are under way then. Containers stay as they are.
    ///
    /// The cache must be complete: a Pod that is not in it counts as deleted.
    pub async fn run(self: Arc<Self>, workers: usize, shutdown: CancellationToken) {
        self.restore();
        let worker = || Arc::clone(&self).work(shutdown.clone());
        let mut all = JoinSet::new();
        for _ in 0..workers {
            all.spawn(worker());
        }
        while let Some(ended) = all.join_next().await {
            if let Err(panic) = ended {
                error!(%panic, "a worker panicked");
                self.rounds.panicked();
                all.spawn(worker());
            }
        }
    }

    async fn work(self: Arc<Self>, shutdown: CancellationToken) {
        while let Some(Some(ticket)) = shutdown.run_until_cancelled(self.queue.next()).await {
            // The ticket of a round that panics is dropped: its Pod backs off as after any failure, the others go on.
            if catch_panic("reconcile", self.attend(ticket)).await.is_err() {
                self.rounds.panicked();
            }
        }
    }

    /// Enters what an earlier life admitted, and has a look at what it left behind.
    ///
    /// Pods were queued as the cache was filled; sandboxes may have no Pod any more.
    fn restore(&self) {
        let views = self.pods.list();
        let ours = views
            .iter()
            .filter(|view| self.nodes.contains_key(&view.node));
        for view in ours {
            // One Pod that cannot be entered is no reason not to run the others.
            let _ = catch_unwind("restore", || self.restore_pod(&view.pod()));
        }
        let left = self.hands.runtime.pods();
        left.into_iter().for_each(|pod| self.queue.add(pod, None));
    }

    fn restore_pod(&self, pod: &Pod) {
        if model::is_terminal(pod) {
            return;
        }
        let (key, uid) = (Key::of(&pod.metadata), &pod.metadata.uid);
        let sandboxes = self.hands.runtime.sandboxes(&key);
        let sandbox = sandboxes.iter().find(|sandbox| sandbox.config.uid == *uid);
        if sandbox.is_some() || pod.status.start_time.is_some() {
            let (requests, ip) = (
                model::requests(&pod.spec),
                sandbox.map(|sandbox| sandbox.config.ip),
            );
            self.ledger
                .restore(&key, uid, &pod.spec.node_name, requests, ip);
        }
    }

    /// One Pod, until nothing can be done for it at once.
    async fn attend(&self, mut ticket: Ticket<Key>) {
        if !self.barrier.reached(&ticket.key).await {
            warn!(pod = %ticket.key, "the cache lags behind own writes");
            return ticket.retry();
        }
        let looked = Instant::now();
        let _active = self.rounds.begin();
        ticket.catch_up();
        let mut note = self.decision_log.open(&ticket);
        let world = self.observe(&ticket.key, BTreeMap::new());
        if let Some(pod) = &world.pod {
            let meta = &pod.object.metadata;
            note.saw(meta.resource_version.clone(), meta.generation);
        }
        let plan = plan(&world);
        if plan.is_empty() && status(&world).is_none() {
            if world.is_settled() {
                ticket.unfinished(false);
            }
            note.close(None, 0, plan.again);
            self.rounds.noop();
            self.rounds.ended(succeeded(plan.again));
            return ticket.done(plan.again);
        }
        let cascade = begin(&ticket, &world, looked);
        note.belongs(&cascade);
        let round = self.round(&ticket.key, world, plan, &mut note);
        let ended = cascade.run(round).await;
        write_down(note, &ended);
        let error = ended.as_ref().err();
        cascade.ended(
            if error.is_some() { "error" } else { "success" },
            error.map(|error| error as _),
        );
        let result = ended.as_ref().map(|(again, _)| succeeded(*again));
        self.rounds.ended(result.unwrap_or("error"));
        let _entered = cascade.span().enter();
        match ended {
            Ok((again, settled)) => {
                ticket.unfinished(!settled);
                ticket.done(again);
            }
            Err(Error::Config { container, trouble }) => {
                info!(pod = %ticket.key, container, why = trouble.message, "not started");
                ticket.done(Some(TROUBLE));
            }
            Err(Error::Gateway(error)) if error.reason == Reason::Conflict => {
                debug!(pod = %ticket.key, %error, "overtaken");
                ticket.retry();
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(pod = %ticket.key, error, "failed");
                ticket.retry();
            }
        }
    }

    /// Acts and looks again until there is nothing left to do now, then reports once.
    ///
    /// Answers when to look again, and whether the Pod has arrived where it was to be.
    async fn round(
        &self,
        key: &Key,
        mut world: World,
        mut plan: Plan<Action>,
        note: &mut Note,
    ) -> Result<(Option<Duration>, bool), Error> {
        let mut failed = None;
        for _ in 0..MOST_TURNS {
            if plan.is_empty() || failed.is_some() {
                break;
            }
            note.plan(&plan, |_| None);
            let mut troubles = BTreeMap::new();
            match self.carry_out(key, &world, &plan).await {
                // The object was written: what comes next depends on how the watch brings it back.
                Ok(()) if plan.steps.iter().any(|step| step.action == Action::Delete) => {
                    return Ok((None, true));
                }
                Ok(()) => {}
                Err(error) => {
                    if let Error::Config { container, trouble } = &error {
                        troubles.insert(container.clone(), trouble.clone());
                    }
                    failed = Some(error);
                }
            }
            world = self.observe(key, troubles);
            plan = crate::plan::plan(&world);
        }
        self.report(key, &world, note).await?;
        failed.map_or(Ok((plan.again, world.is_settled())), Err)
    }

    /// Does the steps in their order, none after the first that fails.
    async fn carry_out(&self, key: &Key, world: &World, plan: &Plan<Action>) -> Result<(), Error> {
        for step in &plan.steps {
            let (action, because) = (&step.action, step.because);
            let act = SpanBuilder::from_name(action.name()).with_attributes([
                KeyValue::new("action", format!("{action:?}")),
                KeyValue::new("because", because),
            ]);
            let act = Span::current().child(act);
            let acted = act.in_scope(self.hands.act(world, action)).await;
            let receipt = acted.inspect_err(|error| act.set_error(error.to_string()))?;
            debug!(pod = %key, ?action, because, "done");
            self.barrier.wrote(key, [receipt]);
        }
        Ok(())
    }

    async fn report(&self, key: &Key, world: &World, note: &mut Note) -> Result<(), Error> {
        if let Some(pod) = &world.pod {
            if status(world).is_some() {
                note.reports();
            }
            let report = SpanBuilder::from_name("report").with_kind(SpanKind::Client);
            let reported = self.hands.report(world, pod);
            let receipt = Span::current().child(report).in_scope(reported).await?;
            self.barrier.wrote(key, [receipt]);
            metrics::reported(world);
        }
        Ok(())
    }

    fn observe(&self, key: &Key, troubles: BTreeMap<String, Trouble>) -> World {
        let view = self.pods.get(key);
        let pod = view.and_then(|view| self.nodes.get(&view.node).map(|node| (view.pod(), node)));
        World {
            now: Timestamp::now(),
            instant: std::time::Instant::now(),
            pod: self.settle(key, pod),
            sandboxes: self.hands.runtime.sandboxes(key),
            troubles,
        }
    }

    /// The Pod with its place on its node; one that is gone, or has ended, gives its place back.
    fn settle(&self, key: &Key, pod: Option<(Pod, &Node)>) -> Option<Bound> {
        if pod.as_ref().is_none_or(|(pod, _)| model::is_terminal(pod)) {
            self.ledger.release(key);
        }
        let (object, node) = pod?;
        let admission = match model::is_terminal(&object) {
            true => Ok(node.room.network),
            false => {
                let requests = model::requests(&object.spec);
                self.ledger
                    .admit(key, &object.metadata.uid, &node.name, requests)
            }
        };
        Some(Bound {
            object,
            host_ip: node.ip.to_string(),
            allocatable: Arc::clone(&node.resources),
            admission,
            runtime: R::NAME,
        })
    }
}

/// Enters how a round ended.
fn write_down(note: Note, ended: &Result<(Option<Duration>, bool), Error>) {
    let done = note.planned();
    match ended {
        Ok((again, _)) => note.close(None, done, *again),
        Err(error @ Error::Config { .. }) => note.close(Some(error.to_string()), 0, Some(TROUBLE)),
        Err(Error::Gateway(error)) => {
            note.close(Some(format!("{}: {error}", error.reason.name())), 0, None);
        }
        Err(Error::Runtime(error)) => note.close(Some(error.to_string()), 0, None),
    }
}

fn begin(ticket: &Ticket<Key>, world: &World, looked: Instant) -> Cascade {
    let round = SpanBuilder::from_name("reconcile");
    let cascade = Cascade::begin(round, ticket, looked);
    if let Some(pod) = &world.pod {
        cascade.about("pod", &Meta::of(&pod.object.metadata));
        let node = pod.object.spec.node_name.clone();
        cascade.label("k8s.node.name", node);
    }
    cascade
}

/// How metrics call the end of a round that did not fail.
const fn succeeded(again: Option<Duration>) -> &'static str {
    match again {
        Some(_) => "requeue_after",
        None => "success",
    }
}

#[cfg(test)]
mod tests;
