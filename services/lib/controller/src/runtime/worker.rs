//! One reconcile: observe, plan, act, status.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

use futures::future::ready;
use futures::stream::FuturesUnordered;
use futures::{StreamExt as _, TryStreamExt as _};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason, Resource as _};
use setpoint_task::catch_panic;
use setpoint_telemetry::{Settings, Span};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::Clock;
use crate::cascade::Cascade;
use crate::decision_log::{DecisionLog, Note};
use crate::label::{label, verb};
use crate::{
    Barrier, Client, Inputs, Outcome, Plan, Receipt, Reconciler, StatusOf, Step, Ticket, metrics,
};

/// A write was refused because its term is over.
#[derive(Debug)]
pub(crate) struct Fenced;

/// The state that the workers of one term share.
pub(crate) struct Worker<R> {
    pub(crate) controller: &'static str,
    pub(crate) seeds: Seeds,
    pub(crate) reconciler: Arc<R>,
    pub(crate) gateway: Client,
    pub(crate) barrier: Barrier,
    /// The maximum number of concurrent reconciles of a batch.
    pub(crate) concurrency: usize,
    /// Whether keys are taken in batches.
    pub(crate) batched: bool,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<metrics::Reconciles>,
    pub(crate) decision_log: DecisionLog,
}

/// The seeds of reconciles that failed, by key.
#[derive(Debug, Default)]
pub(crate) struct Seeds(Mutex<HashMap<Key, u64>>);

impl Seeds {
    /// Returns the seed of the last reconcile of the key if it failed, otherwise a new one.
    fn get(&self, key: &Key) -> u64 {
        let kept = self.0.lock().get(key).copied();
        kept.unwrap_or_else(rand::random)
    }

    /// Keeps the seed of a failed reconcile until one succeeds.
    fn keep(&self, key: &Key, seed: u64, failed: bool) {
        let mut seeds = self.0.lock();
        match failed {
            true => seeds.insert(key.clone(), seed),
            false => seeds.remove(key),
        };
    }
}

impl<R: Reconciler> Worker<R> {
    /// Reconciles keys that were taken together, and ends their tickets.
    pub(crate) async fn work_on(&self, mut tickets: Vec<Ticket<Key>>) -> Result<(), Fenced> {
        if !self.reached(&tickets).await {
            warn!(controller = self.controller, keys = ?keys(&tickets), "the caches lag behind own writes");
            tickets.into_iter().for_each(Ticket::retry);
            return Ok(());
        }
        let observed = Instant::now();
        tickets.iter_mut().for_each(Ticket::catch_up);
        let inputs =
            |ticket: &Ticket<Key>| (ticket.key.clone(), self.inputs(self.seeds.get(&ticket.key)));
        let inputs: Vec<_> = tickets.iter().map(inputs).collect();
        for (key, Inputs { now, .. }) in &inputs {
            self.reconciler.fetch(&self.gateway, key, *now).await;
        }
        let worlds = self.reconciler.observe_all(&inputs);
        let work = tickets.into_iter().zip(inputs).zip(worlds);
        // Boxed, worlds as well: these futures are large, and are moved on their way into others.
        let work = work.map(|((ticket, (_, inputs)), world)| {
            Box::pin(self.reconcile(ticket, inputs, world.map(Box::new), observed))
        });
        let work: Vec<_> = work.map(|work| self.guard(work)).collect();
        futures::stream::iter(work)
            .buffer_unordered(self.concurrency)
            .try_for_each(|()| ready(Ok(())))
            .await
    }

    /// Waits until the caches have reached the writes for these keys, or all writes before a batch; `false` if they
    /// take too long.
    async fn reached(&self, tickets: &[Ticket<Key>]) -> bool {
        match tickets {
            [ticket] if !self.batched => self.barrier.reached(&ticket.key).await,
            _ => self.barrier.all_reached().await,
        }
    }

    fn inputs(&self, seed: u64) -> Inputs {
        Inputs {
            now: (self.clock)(),
            instant: Instant::now().into_std(),
            seed,
        }
    }

    /// Catches a panic: its ticket is dropped, so that its key backs off, and the others of the batch continue.
    async fn guard(&self, work: impl Future<Output = Result<(), Fenced>>) -> Result<(), Fenced> {
        catch_panic("reconcile", work).await.unwrap_or_else(|_| {
            self.metrics.panicked();
            Ok(())
        })
    }

    async fn reconcile(
        &self,
        ticket: Ticket<Key>,
        inputs: Inputs,
        world: Option<Box<R::World>>,
        observed: Instant,
    ) -> Result<(), Fenced> {
        let _active = self.metrics.begin();
        let mut note = self.decision_log.open(&ticket);
        let mut outcome = match world {
            None => self.nothing_to_do(Outcome::default()),
            Some(world) => {
                self.decide(&ticket, inputs, world, observed, &mut note)
                    .await
            }
        };
        let failed = outcome.failed.as_ref();
        self.seeds.keep(&ticket.key, inputs.seed, failed.is_some());
        let delay = failed.and_then(R::retry_after);
        outcome.plan.again = delay.or(outcome.plan.again);
        note.end(&outcome);
        self.settle(ticket, outcome)
    }

    async fn decide(
        &self,
        ticket: &Ticket<Key>,
        inputs: Inputs,
        world: Box<R::World>,
        observed: Instant,
        note: &mut Note,
    ) -> Outcome<R::Action> {
        let planned = Outcome::of(R::plan(&world));
        note.about(R::meta(&world));
        if let Some((resource, _)) = R::kind(&world) {
            note.of(resource, R::meta(&world));
        }
        let idle = planned.plan.is_empty();
        let status = idle.then(|| R::status(&world, &planned)).flatten();
        if idle && status.is_none() {
            if Settings::get().noop_rounds {
                self.cascade(ticket, &world, &planned.plan, observed)
                    .ended("noop", None);
            }
            if R::converged(&world) {
                ticket.unfinished(false);
            }
            return self.nothing_to_do(planned);
        }
        let cascade = self.cascade(ticket, &world, &planned.plan, observed);
        note.belongs(&cascade);
        let work = Box::pin(self.converge(ticket, inputs, world, (planned, status), note));
        let (world, outcome) = cascade.run(work).await;
        R::trace(&world, &outcome, &cascade);
        cascade.ended(
            result(&outcome),
            outcome.failed.as_ref().map(|error| error as _),
        );
        outcome
    }

    /// Counts a reconcile without work, which has no span: most of them follow from own writes.
    fn nothing_to_do(&self, idle: Outcome<R::Action>) -> Outcome<R::Action> {
        self.metrics.noop();
        idle
    }

    /// Executes plans, then writes the status, which is known already if the first plan is empty. Returns the last
    /// observation.
    async fn converge(
        &self,
        ticket: &Ticket<Key>,
        inputs: Inputs,
        mut world: Box<R::World>,
        (mut outcome, status): (Outcome<R::Action>, Option<StatusOf<R>>),
        note: &mut Note,
    ) -> (Box<R::World>, Outcome<R::Action>) {
        let key = &ticket.key;
        for _ in 0..R::PASSES {
            if outcome.failed.is_some() || outcome.plan.is_empty() {
                break;
            }
            let steps = outcome.plan.steps.iter();
            steps.for_each(|step| {
                self.log_step(ticket, &world, step);
                R::describe(&world, step, note);
            });
            outcome = self.execute(key, &world, outcome).await;
            if R::PASSES == 1 {
                break;
            }
            let written = self.barrier.awaits(key);
            let next = (!written).then(|| self.reconciler.observe(key, self.inputs(inputs.seed)));
            let Some(next) = next.flatten() else {
                // What was written comes back, or nothing is left.
                if outcome.failed.is_none() {
                    ticket.unfinished(false);
                }
                return (world, outcome);
            };
            *world = next;
            outcome.plan = R::plan(&world);
        }
        let status = status.or_else(|| R::status(&world, &outcome));
        let outcome = self.report(key, &world, outcome, status, note).await;
        if outcome.failed.is_none() {
            ticket.unfinished(!R::converged(&world));
        }
        (world, outcome)
    }

    /// Logs a step of a plan before it is executed.
    fn log_step(&self, ticket: &Ticket<Key>, world: &R::World, step: &Step<R::Action>) {
        let kind = R::kind(world).map_or(R::Object::KIND, |(_, kind)| kind);
        debug!(
            controller = self.controller,
            object = format!("{} {}", kind.to_lowercase(), ticket.key),
            action = described::<R>(world, &step.action),
            because = step.because,
            woken_by = writers(ticket),
            "planned"
        );
    }

    /// Executes the steps concurrently: one at first, one more for each that succeeds, none after the first failure.
    ///
    /// A plan of hundreds of steps that exceeds a quota costs one call.
    async fn execute(
        &self,
        key: &Key,
        world: &R::World,
        mut outcome: Outcome<R::Action>,
    ) -> Outcome<R::Action> {
        let Outcome { plan, failed, done } = &mut outcome;
        let single = plan.steps.len() == 1;
        let mut steps = plan.steps.iter();
        let mut running = FuturesUnordered::new();
        loop {
            let window = R::CONCURRENCY.min(*done + 1);
            while failed.is_none() && running.len() < window {
                let Some(step) = steps.next() else { break };
                running.push(self.act(key, world, step, single));
            }
            match running.next().await {
                None => break,
                Some(Ok(receipt)) => {
                    *done += 1;
                    self.barrier.wrote(key, [receipt]);
                }
                Some(Err(error)) => _ = failed.get_or_insert(error),
            }
        }
        drop(running);
        outcome
    }

    async fn act(
        &self,
        key: &Key,
        world: &R::World,
        step: &Step<R::Action>,
        single: bool,
    ) -> Result<Receipt, ApiError> {
        let Step { action, because } = step;
        let text = label(action);
        let act = call(verb(&text).to_owned()).with_attributes([
            KeyValue::new("action", text),
            KeyValue::new("because", *because),
        ]);
        let acted = async {
            let acted = Box::pin(self.reconciler.act(&self.gateway, world, action)).await;
            self.reconciler.record(world, action, &acted);
            match &acted {
                Ok(_) => debug!(%key, action = label(action), because, "done"),
                Err(error) => failed(key, action, error),
            }
            acted
        };
        match R::SPAN {
            Some(_) if single => acted.await,
            _ => Span::current().child(act).in_scope(acted).await,
        }
    }

    async fn report(
        &self,
        key: &Key,
        world: &R::World,
        mut outcome: Outcome<R::Action>,
        status: Option<StatusOf<R>>,
        note: &mut Note,
    ) -> Outcome<R::Action> {
        let is_fenced = outcome.failed.as_ref().is_some_and(ApiError::is_fenced);
        let Some(status) = status.filter(|_| !is_fenced) else {
            return outcome;
        };
        note.reports();
        let report = Span::current().child(call("report"));
        let reported = self.reconciler.update_status(&self.gateway, world, status);
        match report.in_scope(reported).await {
            Ok(receipt) => self.barrier.wrote(key, [receipt]),
            // The object has been deleted, which the next reconcile observes.
            Err(error) if error.reason == Reason::NotFound => {}
            Err(error) => {
                let _entered = report.enter();
                failed(key, "Report", &error);
                outcome.failed.get_or_insert(error);
            }
        }
        outcome
    }

    fn settle(&self, ticket: Ticket<Key>, outcome: Outcome<R::Action>) -> Result<(), Fenced> {
        self.metrics.ended(result(&outcome));
        let fenced = outcome.failed.as_ref().is_some_and(ApiError::is_fenced);
        match outcome.failed {
            None => ticket.done(outcome.plan.again),
            Some(error) if error.is_namespace_terminating() || R::retry_after(&error).is_some() => {
                ticket.done(outcome.plan.again);
            }
            Some(error) if is_refused(&error) => ticket.refused(),
            Some(_) => ticket.retry(),
        }
        if fenced { Err(Fenced) } else { Ok(()) }
    }

    fn cascade(
        &self,
        ticket: &Ticket<Key>,
        world: &R::World,
        plan: &Plan<R::Action>,
        observed: Instant,
    ) -> Cascade {
        let reconcile = match (R::SPAN, plan.steps.first()) {
            (Some(name), Some(step)) => {
                call(name).with_attributes([KeyValue::new("because", step.because)])
            }
            _ => SpanBuilder::from_name("reconcile"),
        };
        let cascade = Cascade::begin(reconcile, ticket, observed);
        let kind = R::kind(world).map_or(R::Object::KIND, |(_, kind)| kind);
        // In lower case, as in OpenTelemetry's conventions.
        cascade.about(&kind.to_lowercase(), R::meta(world));
        cascade
    }
}

/// Returns the name of an action, and the object that it touches.
fn described<R: Reconciler>(world: &R::World, action: &R::Action) -> String {
    let said = label(action);
    match R::touches(world, action) {
        Some(touched) => format!("{} {}", verb(&said), touched.name),
        None => verb(&said).to_owned(),
    }
}

/// Returns the writers of the changes that a ticket stands for.
fn writers(ticket: &Ticket<Key>) -> String {
    let writers = ticket.causes.iter().map(|cause| cause.writer.as_str());
    let writers: BTreeSet<_> = writers.collect();
    Vec::from_iter(writers).join(", ")
}

fn keys(tickets: &[Ticket<Key>]) -> Vec<&Key> {
    tickets.iter().map(|ticket| &ticket.key).collect()
}

/// Returns the result of a reconcile, as named in upstream's metrics.
fn result<A>(outcome: &Outcome<A>) -> &'static str {
    match &outcome.failed {
        None if outcome.plan.again.is_some() => "requeue_after",
        None => "success",
        Some(error) if error.is_namespace_terminating() => "success",
        Some(_) => "error",
    }
}

/// Returns the span of a call to the gateway.
fn call(name: impl Into<Cow<'static, str>>) -> SpanBuilder {
    SpanBuilder::from_name(name).with_kind(SpanKind::Client)
}

/// Returns whether a write cannot succeed until an object changes: it is not a question of the state of the store.
fn is_refused(error: &ApiError) -> bool {
    let reasons = [
        Reason::Invalid,
        Reason::BadRequest,
        Reason::RequestEntityTooLarge,
    ];
    reasons.contains(&error.reason)
}

/// Returns whether nothing needs to be done about a failure: the object has changed since it was observed, which the
/// next reconcile repairs, or its namespace is being deleted.
fn is_overtaken(error: &ApiError) -> bool {
    let reasons = [Reason::Conflict, Reason::AlreadyExists, Reason::NotFound];
    reasons.contains(&error.reason) || error.is_namespace_terminating()
}

/// Logs a failed action.
fn failed(key: &Key, action: impl Debug, error: &ApiError) {
    Span::current().set_error(error.to_string());
    let (action, reason) = (label(&action), error.reason.name());
    match is_overtaken(error) {
        true => debug!(%key, action, reason, %error, "overtaken"),
        false => warn!(%key, action, reason, %error, "failed"),
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::NAMESPACE_TERMINATING;
    use setpoint_proto::meta::{StatusCause, StatusDetails};

    use super::*;

    /// Checks E10: a create in a namespace that is being deleted is no warning.
    #[test]
    fn a_write_into_a_namespace_that_is_being_deleted_is_overtaken() {
        let refusal = ApiError::new(Reason::Forbidden, "exceeded quota");
        assert!(!is_overtaken(&refusal));
        let cause = StatusCause {
            reason: NAMESPACE_TERMINATING.into(),
            ..StatusCause::default()
        };
        let details = StatusDetails {
            causes: vec![cause],
            ..StatusDetails::default()
        };
        let ending = refusal.with_details(details);
        assert!(is_overtaken(&ending));
        let outcome = Outcome::<()> {
            failed: Some(ending),
            ..Outcome::default()
        };
        assert_eq!(result(&outcome), "success");
    }
}
