//! One reconcile: observe, plan, act, status.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason};
use setpoint_telemetry::{Settings, Span};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::cascade::Cascade;
use crate::decision_log::{DecisionLog, Note};
use crate::label::{label, verb};
use crate::{Barrier, Client, Inputs, Outcome, Receipt, Reconciler, Step, Ticket, metrics};

/// The most actions of one reconcile at once: more would wait in the gateway.
const MAX_AT_ONCE: usize = 64;

/// A write was refused since the term under which it was made is over.
#[derive(Debug)]
pub(crate) struct Fenced;

/// The state that the workers of one term share.
pub(crate) struct Worker<R> {
    pub(crate) controller: &'static str,
    /// In lower case, as OpenTelemetry's conventions have it.
    pub(crate) kind: String,
    pub(crate) seeds: Seeds,
    pub(crate) reconciler: Arc<R>,
    pub(crate) gateway: Client,
    pub(crate) barrier: Barrier,
    pub(crate) metrics: Arc<metrics::Reconciles>,
    pub(crate) decision_log: DecisionLog,
}

/// The seeds of reconciles that failed, by key.
#[derive(Debug, Default)]
pub(crate) struct Seeds(Mutex<HashMap<Key, u64>>);

impl Seeds {
    /// Returns the seed of the last reconcile of the key if that failed, or another one.
    fn get(&self, key: &Key) -> u64 {
        let kept = self.0.lock().get(key).copied();
        kept.unwrap_or_else(rand::random)
    }

    /// Keeps the seed of a reconcile that failed, until one does not.
    fn keep(&self, key: &Key, seed: u64, failed: bool) {
        let mut seeds = self.0.lock();
        match failed {
            true => seeds.insert(key.clone(), seed),
            false => seeds.remove(key),
        };
    }
}

impl<R: Reconciler> Worker<R> {
    /// Works on one key, and settles its ticket.
    pub(crate) async fn work_on(&self, mut ticket: Ticket<Key>) -> Result<(), Fenced> {
        if !self.barrier.reached(&ticket.key).await {
            warn!(controller = self.controller, key = %ticket.key, "the caches lag behind own writes");
            ticket.retry();
            return Ok(());
        }
        let _active = self.metrics.begin();
        let looked = Instant::now();
        ticket.catch_up();
        let mut note = self.decision_log.open(&ticket);
        let inputs = Inputs {
            now: Timestamp::now(),
            seed: self.seeds.get(&ticket.key),
        };
        let outcome = match self.reconciler.observe(&ticket.key, inputs) {
            None => self.nothing_to_do(Outcome::default()),
            Some(world) => self.reconcile(&ticket, &world, looked, &mut note).await,
        };
        let failed = outcome.failed.is_some();
        self.seeds.keep(&ticket.key, inputs.seed, failed);
        note.end(&outcome);
        self.settle(ticket, outcome)
    }

    async fn reconcile(
        &self,
        ticket: &Ticket<Key>,
        world: &R::World,
        looked: Instant,
        note: &mut Note,
    ) -> Outcome<R::Action> {
        let planned = Outcome::of(R::plan(world));
        note.about(R::meta(world));
        note.plan(&planned.plan, |action| R::touches(world, action));
        if planned.plan.is_empty() && R::status(world, &planned).is_none() {
            if Settings::get().noop_rounds {
                self.cascade(ticket, world, looked).ended("noop", None);
            }
            return self.nothing_to_do(planned);
        }
        let cascade = self.cascade(ticket, world, looked);
        note.belongs(&cascade);
        let key = &ticket.key;
        let work = async {
            let outcome = self.execute(key, world, planned).await;
            self.report(key, world, outcome, note).await
        };
        let outcome = cascade.run(work).await;
        cascade.ended(
            verdict(&outcome),
            outcome.failed.as_ref().map(|error| error as _),
        );
        outcome
    }

    /// Worker without work are counted and leave no span: most of them only look at what they did themselves.
    fn nothing_to_do(&self, idle: Outcome<R::Action>) -> Outcome<R::Action> {
        self.metrics.noop();
        idle
    }

    /// Executes the steps concurrently: one at first, one more for each that succeeds, none after the first failure.
    ///
    /// So a plan of hundreds of steps that exceeds a quota costs one call.
    async fn execute(
        &self,
        key: &Key,
        world: &R::World,
        mut outcome: Outcome<R::Action>,
    ) -> Outcome<R::Action> {
        let Outcome { plan, failed, done } = &mut outcome;
        let mut steps = plan.steps.iter();
        let mut running = FuturesUnordered::new();
        loop {
            let window = MAX_AT_ONCE.min(*done + 1);
            while failed.is_none() && running.len() < window {
                let Some(step) = steps.next() else { break };
                running.push(self.act(key, world, step));
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
    ) -> Result<Receipt, ApiError> {
        let Step { action, because } = step;
        let said = label(action);
        let act = call(verb(&said).to_owned()).with_attributes([
            KeyValue::new("action", said),
            KeyValue::new("because", *because),
        ]);
        let acted = async {
            let acted = self.reconciler.act(&self.gateway, world, action).await;
            self.reconciler.record(world, action, &acted);
            match &acted {
                Ok(_) => debug!(%key, action = label(action), because, "done"),
                Err(error) => failed(key, action, error),
            }
            acted
        };
        Span::current().child(act).in_scope(acted).await
    }

    async fn report(
        &self,
        key: &Key,
        world: &R::World,
        mut outcome: Outcome<R::Action>,
        note: &mut Note,
    ) -> Outcome<R::Action> {
        if outcome.failed.as_ref().is_some_and(ApiError::is_fenced) {
            return outcome;
        }
        let Some(status) = R::status(world, &outcome) else {
            return outcome;
        };
        note.reports();
        let report = Span::current().child(call("report"));
        let reported = self.reconciler.update_status(&self.gateway, world, status);
        match report.in_scope(reported).await {
            Ok(receipt) => self.barrier.wrote(key, [receipt]),
            // The object was deleted meanwhile, which the next reconcile observes.
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
        self.metrics.ended(verdict(&outcome));
        let fenced = outcome.failed.as_ref().is_some_and(ApiError::is_fenced);
        match outcome.failed {
            None => ticket.done(outcome.plan.again),
            Some(error) if error.is_namespace_terminating() => ticket.done(outcome.plan.again),
            Some(_) => ticket.retry(),
        }
        if fenced { Err(Fenced) } else { Ok(()) }
    }

    fn cascade(&self, ticket: &Ticket<Key>, world: &R::World, looked: Instant) -> Cascade {
        let reconcile = SpanBuilder::from_name("reconcile");
        let cascade = Cascade::begin(reconcile, ticket, looked);
        cascade.about(&self.kind, R::meta(world));
        cascade
    }
}

/// Returns the result of a reconcile as upstream's metrics name it.
fn verdict<A>(outcome: &Outcome<A>) -> &'static str {
    match &outcome.failed {
        None if outcome.plan.again.is_some() => "requeue_after",
        None => "success",
        Some(_) => "error",
    }
}

/// A span of one call to the gateway.
fn call(name: impl Into<Cow<'static, str>>) -> SpanBuilder {
    SpanBuilder::from_name(name).with_kind(SpanKind::Client)
}

/// Being late is daily business, and repaired by looking again; other failures are worth a look.
fn failed(key: &Key, action: impl Debug, error: &ApiError) {
    Span::current().set_error(error.to_string());
    let action = label(&action);
    match error.reason {
        Reason::Conflict | Reason::AlreadyExists | Reason::NotFound => {
            debug!(%key, action, reason = error.reason.name(), %error, "overtaken");
        }
        reason => warn!(%key, action, reason = reason.name(), %error, "failed"),
    }
}
