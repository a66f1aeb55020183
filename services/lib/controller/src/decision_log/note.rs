//! The record of one reconcile while it runs.

use std::fmt::Debug;
use std::time::Duration;

use setpoint_model::{Key, Meta};
use setpoint_proto::setpoint::{Round, Step, Verdict};
use setpoint_proto::trace::{duration_ns, now_ns};
use tokio::time::Instant;

use super::{DecisionLog, ObjectRef};
use crate::label::label;
use crate::{Cascade, Outcome, Plan, Ticket};

/// The outcome of a reconcile that executed its plan.
pub(super) const DONE: &str = "done";
/// The outcome of a reconcile without anything to do.
pub(super) const NOTHING: &str = "nothing to do";
/// The outcome of a reconcile that is repeated after a delay.
const WAITING: &str = "waiting";
/// The outcome of a reconcile in which something failed.
const FAILED: &str = "failed";
/// The outcome of a reconcile whose object is gone.
pub(super) const GONE: &str = "gone";

/// The most steps of a record. Further ones are found by the objects that they touch.
const STEPS: usize = 16;

/// A write of the status, as a step.
#[derive(Debug)]
struct Report;

/// The record of one reconcile. It enters the log at the end, and not at all if it is dropped before.
#[must_use]
#[derive(Debug)]
pub struct Note {
    decision_log: DecisionLog,
    subject: ObjectRef,
    began: Instant,
    round: Round,
    touched: Vec<(ObjectRef, Step)>,
    planned: usize,
    rest: Duration,
    seen: bool,
}

impl Note {
    pub(super) fn new(decision_log: DecisionLog, subject: ObjectRef, ticket: &Ticket<Key>) -> Self {
        let began_ns = now_ns();
        let round = Round {
            subject: Some(subject.message()),
            began_ns,
            last_ns: began_ns,
            times: 1,
            attempt: ticket.attempt(),
            causes: ticket.causes.clone(),
            ..Round::default()
        };
        Self {
            decision_log,
            subject,
            began: Instant::now(),
            round,
            touched: Vec::new(),
            planned: 0,
            rest: ticket.rest(),
            seen: false,
        }
    }

    /// Sets the version of the object that was observed.
    pub fn about(&mut self, meta: &Meta) {
        self.saw(meta.revision.to_string(), meta.generation);
    }

    /// Sets the version of the object that was observed.
    pub fn saw(&mut self, revision: String, generation: i64) {
        self.seen = true;
        self.round.revision = revision;
        self.round.generation = generation;
    }

    /// Adds the steps of a plan; `touches` returns the other object that an action writes.
    pub fn plan<A: Debug>(&mut self, plan: &Plan<A>, touches: impl Fn(&A) -> Option<ObjectRef>) {
        for step in &plan.steps {
            self.step(&step.action, step.because, touches(&step.action));
        }
    }

    /// Adds a step.
    pub fn step<A: Debug>(&mut self, action: &A, because: &str, touches: Option<ObjectRef>) {
        self.say(label(action), because, touches);
    }

    /// Like [`Self::step`], with the text of the action.
    pub fn say(&mut self, action: String, because: &str, touches: Option<ObjectRef>) {
        self.seen = true;
        self.planned += 1;
        let step = Step {
            action,
            because: because.to_owned(),
        };
        if self.round.steps.len() < STEPS {
            self.round.steps.push(step.clone());
        } else {
            self.round.more_steps += 1;
        }
        if let Some(subject) = touches.filter(|subject| *subject != self.subject) {
            self.touched.push((subject, step));
        }
    }

    /// Returns the number of steps.
    pub fn planned(&self) -> usize {
        self.planned
    }

    /// Adds the write of the status.
    pub fn reports(&mut self) {
        self.step(&Report, "the status is not what it was", None);
    }

    /// Sets the cascade that the reconcile belongs to.
    pub fn belongs(&mut self, cascade: &Cascade) {
        self.round.traceparent = cascade.span().traceparent();
    }

    /// Sets the verdicts on nodes; `more` is the number of those that are left out.
    pub fn verdicts(&mut self, verdicts: Vec<Verdict>, more: usize) {
        self.round.verdicts = verdicts;
        self.round.more_verdicts = u32::try_from(more).unwrap_or(u32::MAX);
    }

    /// Ends the record with an outcome.
    pub fn end<A>(self, outcome: &Outcome<A>) {
        let failed = outcome.failed.as_ref();
        let failed = failed.map(|error| format!("{}: {error}", error.reason.name()));
        self.close(failed, outcome.done, outcome.plan.again);
    }

    /// Ends the record with an error or a number of executed steps, and the delay until the next reconcile.
    pub fn close(mut self, failed: Option<String>, done: usize, again: Option<Duration>) {
        let round = &mut self.round;
        round.took_ns = duration_ns(self.began.elapsed());
        round.done = u32::try_from(done).unwrap_or(u32::MAX);
        if round.traceparent.is_none() {
            let first = round.causes.first();
            round.traceparent = first.and_then(|cause| cause.traceparent);
        }
        let again = match failed {
            Some(_) => again.or(Some(self.rest)),
            None => again,
        };
        round.next_ns = again.map_or(0, |again| now_ns().saturating_add(duration_ns(again)));
        let outcome = match (&failed, round.steps.is_empty(), again) {
            (Some(_), ..) => FAILED,
            (None, true, _) if !self.seen => GONE,
            (None, _, Some(_)) if done == 0 => WAITING,
            (None, true, _) => NOTHING,
            (None, false, _) => DONE,
        };
        round.outcome = outcome.to_owned();
        round.error = failed.unwrap_or_default();
        self.decision_log
            .enter(self.subject, self.round, self.touched);
    }
}
