//! What is written down of one round while it goes on.

use std::fmt::Debug;
use std::time::Duration;

use setpoint_model::{Key, Meta};
use setpoint_proto::setpoint::{Round, Step, Verdict};
use setpoint_proto::trace::{duration_ns, now_ns};
use tokio::time::Instant;

use super::{DecisionLog, ObjectRef};
use crate::label::label;
use crate::{Cascade, Outcome, Plan, Ticket};

/// How a round went that did what it planned.
pub(super) const DONE: &str = "done";
/// How a round went that found everything as it should be.
pub(super) const NOTHING: &str = "nothing to do";
/// How a round went that wants to look again after a time.
const WAITING: &str = "waiting";
/// How a round went in which something failed.
const FAILED: &str = "failed";
/// How a round went that found no object.
pub(super) const GONE: &str = "gone";

/// So many steps of a round are told. The others are known to the objects that they touch.
const STEPS: usize = 16;

/// A write of the status, as a step.
#[derive(Debug)]
struct Report;

/// What is written down of one round. It is entered when the round is over, and not at all when it is dropped before.
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

    /// The object was there, in this version.
    pub fn saw(&mut self, revision: String, generation: i64) {
        self.seen = true;
        self.round.revision = revision;
        self.round.generation = generation;
    }

    /// This is to be done; `touches` names the object that an action is about, if that is another one.
    pub fn plan<A: Debug>(&mut self, plan: &Plan<A>, touches: impl Fn(&A) -> Option<ObjectRef>) {
        for step in &plan.steps {
            self.step(&step.action, step.because, touches(&step.action));
        }
    }

    /// This is to be done, too.
    pub fn step<A: Debug>(&mut self, action: &A, because: &str, touches: Option<ObjectRef>) {
        self.say(label(action), because, touches);
    }

    /// As [`Self::step`], in words.
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

    /// How many steps there are so far.
    pub fn planned(&self) -> usize {
        self.planned
    }

    /// The status is told anew.
    pub fn reports(&mut self) {
        self.step(&Report, "the status is not what it was", None);
    }

    /// The round is part of this cascade.
    pub fn belongs(&mut self, cascade: &Cascade) {
        self.round.traceparent = cascade.span().traceparent();
    }

    /// What speaks for or against each node; `more` of them are not named.
    pub fn verdicts(&mut self, verdicts: Vec<Verdict>, more: usize) {
        self.round.verdicts = verdicts;
        self.round.more_verdicts = u32::try_from(more).unwrap_or(u32::MAX);
    }

    /// The round is over and went like this.
    pub fn end<A>(self, outcome: &Outcome<A>) {
        let failed = outcome.failed.as_ref();
        let failed = failed.map(|error| format!("{}: {error}", error.reason.name()));
        self.close(failed, outcome.done, outcome.plan.again);
    }

    /// The round is over: an error ended it, or all was done, and it is looked at again after a time.
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
