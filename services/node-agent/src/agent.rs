//! The reconcile loop of the node agent: workers that reconcile one Pod each at a time.

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

use crate::act::{Error, Executor};
use crate::admission::Admission;
use crate::metrics;
use crate::node::Node;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::runtime::Runtime;
use crate::status::status;
use crate::world::{AssignedPod, WaitingReason, World};

/// Maximum number of observe-plan-act passes in one reconcile. No Pod needs as many to get from nothing to running;
/// what is left is done by the next reconcile.
const MAX_PASSES: usize = 16;
/// Requeue delay of a Pod with a container that cannot be started as configured, for example because a ConfigMap is
/// missing.
const CONFIG_RETRY: Duration = Duration::from_secs(10);

/// Reconciles the Pods of the nodes that this process hosts.
pub struct Agent<R> {
    /// Executes planned actions.
    pub executor: Executor<R>,
    /// The nodes of this process, by name.
    pub nodes: HashMap<String, Node>,
    /// Admits Pods to nodes and assigns their addresses.
    pub admission: Admission,
    /// A cache of Pods. It may hold Pods of other nodes, too.
    pub pods: Reader<PodView>,
    /// Delays the reconcile of a Pod until `pods` holds the agent's own last write to it.
    pub barrier: Barrier,
    /// The decision log.
    pub decision_log: DecisionLog,
    /// The Pods to reconcile.
    pub queue: Queue<Key>,
    /// Metrics of reconciles.
    pub rounds: Arc<Reconciles>,
}

impl<R: Runtime> Agent<R> {
    /// Reconciles until `shutdown`, then finishes the reconciles in progress. Containers keep running.
    ///
    /// The cache must be synced: a Pod that is not in it is treated as deleted.
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
            // A panic drops the ticket, which requeues its Pod with backoff; the worker continues with other Pods.
            if catch_panic("reconcile", self.reconcile(ticket))
                .await
                .is_err()
            {
                self.rounds.panicked();
            }
        }
    }

    /// Restores the admission of Pods that an earlier process of this agent admitted, and enqueues every Pod that has a
    /// sandbox.
    ///
    /// Pods were enqueued when the cache was filled, but a sandbox may belong to a Pod that no longer exists.
    fn restore(&self) {
        let views = self.pods.list();
        let ours = views
            .iter()
            .filter(|view| self.nodes.contains_key(&view.node));
        for view in ours {
            // A Pod that cannot be restored must not keep the others from running.
            let _ = catch_unwind("restore", || self.restore_pod(&view.pod()));
        }
        let pods = self.executor.runtime.pods();
        pods.into_iter().for_each(|pod| self.queue.add(pod, None));
    }

    fn restore_pod(&self, pod: &Pod) {
        if model::is_terminal(pod) {
            return;
        }
        let (key, uid) = (Key::of(&pod.metadata), &pod.metadata.uid);
        let sandboxes = self.executor.runtime.sandboxes(&key);
        let sandbox = sandboxes.iter().find(|sandbox| sandbox.config.uid == *uid);
        if sandbox.is_some() || pod.status.start_time.is_some() {
            let (requests, ip) = (
                model::requests(&pod.spec),
                sandbox.map(|sandbox| sandbox.config.ip),
            );
            self.admission
                .restore(&key, uid, &pod.spec.node_name, requests, ip);
        }
    }

    /// Reconciles one Pod: repeats observe, plan and act until the plan is empty, then updates the status.
    async fn reconcile(&self, mut ticket: Ticket<Key>) {
        if !self.barrier.reached(&ticket.key).await {
            warn!(pod = %ticket.key, "the cache has not caught up with own writes");
            return ticket.retry();
        }
        let observed_at = Instant::now();
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
            if world.has_converged() {
                ticket.unfinished(false);
            }
            note.close(None, 0, plan.again);
            self.rounds.noop();
            self.rounds.ended(outcome_label(plan.again));
            return ticket.done(plan.again);
        }
        let cascade = begin_cascade(&ticket, &world, observed_at);
        note.belongs(&cascade);
        let converge = self.converge(&ticket.key, world, plan, &mut note);
        let ended = cascade.run(converge).await;
        close_note(note, &ended);
        let error = ended.as_ref().err();
        cascade.ended(
            if error.is_some() { "error" } else { "success" },
            error.map(|error| error as _),
        );
        let result = ended.as_ref().map(|(again, _)| outcome_label(*again));
        self.rounds.ended(result.unwrap_or("error"));
        let _entered = cascade.span().enter();
        match ended {
            Ok((again, converged)) => {
                ticket.unfinished(!converged);
                ticket.done(again);
            }
            Err(Error::Config { container, waiting }) => {
                info!(pod = %ticket.key, container, why = waiting.message, "container not started");
                ticket.done(Some(CONFIG_RETRY));
            }
            Err(Error::Gateway(error)) if error.reason == Reason::Conflict => {
                debug!(pod = %ticket.key, %error, "conflict; retrying");
                ticket.retry();
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(pod = %ticket.key, error, "reconcile failed; retrying");
                ticket.retry();
            }
        }
    }

    /// Executes plans until one is empty or an action fails, then updates the status.
    ///
    /// Returns the requeue delay, and whether the Pod has converged.
    async fn converge(
        &self,
        key: &Key,
        mut world: World,
        mut plan: Plan<Action>,
        note: &mut Note,
    ) -> Result<(Option<Duration>, bool), Error> {
        let mut failed = None;
        for _ in 0..MAX_PASSES {
            if plan.is_empty() || failed.is_some() {
                break;
            }
            note.plan(&plan, |_| None);
            let mut waiting_reasons = BTreeMap::new();
            match self.execute(key, &world, &plan).await {
                // The write comes back through the watch and enqueues the Pod again.
                Ok(()) if plan.steps.iter().any(|step| step.action == Action::Delete) => {
                    return Ok((None, true));
                }
                Ok(()) => {}
                Err(error) => {
                    if let Error::Config { container, waiting } = &error {
                        waiting_reasons.insert(container.clone(), waiting.clone());
                    }
                    failed = Some(error);
                }
            }
            world = self.observe(key, waiting_reasons);
            plan = crate::plan::plan(&world);
        }
        self.update_status(key, &world, note).await?;
        failed.map_or(Ok((plan.again, world.has_converged())), Err)
    }

    /// Executes the steps of a plan in order; stops at the first that fails.
    async fn execute(&self, key: &Key, world: &World, plan: &Plan<Action>) -> Result<(), Error> {
        for step in &plan.steps {
            let (action, because) = (&step.action, step.because);
            let act = SpanBuilder::from_name(action.name()).with_attributes([
                KeyValue::new("action", format!("{action:?}")),
                KeyValue::new("because", because),
            ]);
            let act = Span::current().child(act);
            let acted = act.in_scope(self.executor.execute(world, action)).await;
            let receipt = acted.inspect_err(|error| act.set_error(error.to_string()))?;
            debug!(pod = %key, ?action, because, "executed");
            self.barrier.wrote(key, [receipt]);
        }
        Ok(())
    }

    async fn update_status(&self, key: &Key, world: &World, note: &mut Note) -> Result<(), Error> {
        if let Some(pod) = &world.pod {
            if status(world).is_some() {
                note.reports();
            }
            let report = SpanBuilder::from_name("report").with_kind(SpanKind::Client);
            let reported = self.executor.update_status(world, pod);
            let receipt = Span::current().child(report).in_scope(reported).await?;
            self.barrier.wrote(key, [receipt]);
            metrics::observe_pod_start(world);
        }
        Ok(())
    }

    fn observe(&self, key: &Key, waiting_reasons: BTreeMap<String, WaitingReason>) -> World {
        let view = self.pods.get(key);
        let pod = view.and_then(|view| self.nodes.get(&view.node).map(|node| (view.pod(), node)));
        World {
            now: Timestamp::now(),
            instant: std::time::Instant::now(),
            pod: self.admit(key, pod),
            sandboxes: self.executor.runtime.sandboxes(key),
            waiting_reasons,
        }
    }

    /// Admits the Pod to its node. A Pod that is gone or terminal is released instead.
    fn admit(&self, key: &Key, pod: Option<(Pod, &Node)>) -> Option<AssignedPod> {
        if pod.as_ref().is_none_or(|(pod, _)| model::is_terminal(pod)) {
            self.admission.release(key);
        }
        let (object, node) = pod?;
        let admission = match model::is_terminal(&object) {
            true => Ok(node.capacity.network),
            false => {
                let requests = model::requests(&object.spec);
                self.admission
                    .admit(key, &object.metadata.uid, &node.name, requests)
            }
        };
        Some(AssignedPod {
            object,
            host_ip: node.ip.to_string(),
            allocatable: Arc::clone(&node.resources),
            admission,
            runtime: R::NAME,
        })
    }
}

/// Closes the decision log's entry for a reconcile.
fn close_note(note: Note, ended: &Result<(Option<Duration>, bool), Error>) {
    let done = note.planned();
    match ended {
        Ok((again, _)) => note.close(None, done, *again),
        Err(error @ Error::Config { .. }) => {
            note.close(Some(error.to_string()), 0, Some(CONFIG_RETRY))
        }
        Err(Error::Gateway(error)) => {
            note.close(Some(format!("{}: {error}", error.reason.name())), 0, None);
        }
        Err(Error::Runtime(error)) => note.close(Some(error.to_string()), 0, None),
    }
}

fn begin_cascade(ticket: &Ticket<Key>, world: &World, observed_at: Instant) -> Cascade {
    let span = SpanBuilder::from_name("reconcile");
    let cascade = Cascade::begin(span, ticket, observed_at);
    if let Some(pod) = &world.pod {
        cascade.about("pod", &Meta::of(&pod.object.metadata));
        let node = pod.object.spec.node_name.clone();
        cascade.label("k8s.node.name", node);
    }
    cascade
}

/// Returns the `result` label of a reconcile that succeeded.
const fn outcome_label(again: Option<Duration>) -> &'static str {
    match again {
        Some(_) => "requeue_after",
        None => "success",
    }
}

#[cfg(test)]
mod tests;
