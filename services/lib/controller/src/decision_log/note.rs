//! The record of one reconcile while it runs.

use std::fmt::Debug;
use std::time::Duration;

use setpoint_model::{Key, Meta};
use setpoint_proto::setpoint::{ObjectRef, Reconcile, ReconcileOutcome, Step, Verdict};
use setpoint_proto::trace::{duration_ns, now_ns};
use tokio::time::Instant;

use super::DecisionLog;
use crate::label::label;
use crate::{Cascade, Outcome, Ticket};

/// The maximum number of steps of a record. Further ones are found by the objects that they touch.
const STEPS: usize = 16;

/// The step that writes the status.
#[derive(Debug)]
struct Report;

/// The record of one reconcile. [`Self::end`] enters it into the log; dropping it discards it.
#[must_use]
#[derive(Debug)]
pub struct Note {
    decision_log: DecisionLog,
    subject: ObjectRef,
    began: Instant,
    reconcile: Reconcile,
    touched: Vec<(ObjectRef, Step)>,
    rest: Duration,
    seen: bool,
    waits: bool,
}

impl Note {
    pub(super) fn new(decision_log: DecisionLog, subject: ObjectRef, ticket: &Ticket<Key>) -> Self {
        let began_ns = now_ns();
        let reconcile = Reconcile {
            subject: Some(subject.clone()),
            began_ns,
            last_ns: began_ns,
            times: 1,
            attempt: ticket.attempt(),
            causes: ticket.causes.clone(),
            ..Reconcile::default()
        };
        Self {
            decision_log,
            subject,
            began: Instant::now(),
            reconcile,
            touched: Vec::new(),
            rest: ticket.rest(),
            seen: false,
            waits: false,
        }
    }

    /// Sets the version of the object that was observed.
    pub fn about(&mut self, meta: &Meta) {
        self.seen = true;
        self.reconcile.revision = meta.revision.to_string();
        self.reconcile.generation = meta.generation;
    }

    /// Sets the reconciled object, if its kind is not that of the controller.
    pub(crate) fn of(&mut self, resource: &str, meta: &Meta) {
        self.subject = meta.key.clone().in_resource(resource);
        self.reconcile.subject = Some(self.subject.clone());
    }

    /// Adds a step.
    pub fn step<A: Debug>(&mut self, action: &A, because: &str, touches: Option<ObjectRef>) {
        self.say(label(action), because, touches);
    }

    /// Like [`Self::step`], with the text of the action.
    pub fn say(&mut self, action: String, because: &str, touches: Option<ObjectRef>) {
        self.seen = true;
        let step = Step {
            action,
            because: because.to_owned(),
        };
        if self.reconcile.steps.len() < STEPS {
            self.reconcile.steps.push(step.clone());
        } else {
            self.reconcile.more_steps += 1;
        }
        if let Some(subject) = touches.filter(|subject| *subject != self.subject) {
            self.touched.push((subject, step));
        }
    }

    /// Adds the write of the status.
    pub fn reports(&mut self) {
        self.step(&Report, "the status is not what it was", None);
    }

    /// Sets that the object waits even though its steps are executed: they only report that it does.
    pub fn waits(&mut self) {
        self.waits = true;
    }

    /// Sets the cascade that the reconcile belongs to.
    pub fn belongs(&mut self, cascade: &Cascade) {
        self.reconcile.traceparent = cascade.span().traceparent();
    }

    /// Sets the verdicts on nodes; `more` is the number of those that are left out.
    pub fn verdicts(&mut self, verdicts: Vec<Verdict>, more: usize) {
        self.reconcile.verdicts = verdicts;
        self.reconcile.more_verdicts = u32::try_from(more).unwrap_or(u32::MAX);
    }

    /// Ends the record with an outcome.
    pub fn end<A>(mut self, outcome: &Outcome<A>) {
        let failed = outcome.failed.as_ref();
        let failed = failed.map(|error| format!("{}: {error}", error.reason.name()));
        let (done, again) = (outcome.done, outcome.plan.again);
        let reconcile = &mut self.reconcile;
        reconcile.took_ns = duration_ns(self.began.elapsed());
        reconcile.done = u32::try_from(done).unwrap_or(u32::MAX);
        if reconcile.traceparent.is_none() {
            let first = reconcile.causes.first();
            reconcile.traceparent = first.and_then(|cause| cause.traceparent);
        }
        let again = match failed {
            Some(_) => again.or(Some(self.rest)),
            None => again,
        };
        reconcile.next_ns = again.map_or(0, |again| now_ns().saturating_add(duration_ns(again)));
        let outcome = match (&failed, reconcile.steps.is_empty(), again) {
            (Some(_), ..) => ReconcileOutcome::Failed,
            (None, true, _) if !self.seen => ReconcileOutcome::Gone,
            (None, _, Some(_)) if done == 0 || self.waits => ReconcileOutcome::Waiting,
            (None, true, _) => ReconcileOutcome::NothingToDo,
            (None, false, _) => ReconcileOutcome::Done,
        };
        reconcile.outcome = outcome.into();
        reconcile.error = failed.unwrap_or_default();
        self.decision_log
            .enter(self.subject, self.reconcile, self.touched);
    }
}
