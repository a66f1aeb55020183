//! The last rounds of one object.

use std::collections::VecDeque;
use std::sync::Arc;

use setpoint_proto::setpoint::{Round, Step};

use super::{ObjectRef, ROUNDS, note};

/// The last rounds of one object, newest last.
#[derive(Debug, Default)]
pub(super) struct Ring {
    rounds: VecDeque<Seen>,
    /// The decision log's clock when it was last written to.
    pub(super) entered: u64,
}

/// A round as one object sees it.
#[derive(Debug)]
pub(super) struct Seen {
    round: Arc<Round>,
    /// The step that touched the object; `None` when it was looked at.
    step: Option<Step>,
}

impl Seen {
    pub(super) fn whole(round: &Arc<Round>) -> Self {
        let round = round.clone();
        Self { round, step: None }
    }

    pub(super) fn touched(round: &Arc<Round>, step: Step) -> Self {
        let (round, step) = (round.clone(), Some(step));
        Self { round, step }
    }

    fn told(&self, subject: &ObjectRef) -> Round {
        let round = (*self.round).clone();
        let Some(step) = &self.step else {
            return round;
        };
        Round {
            steps: vec![step.clone()],
            more_steps: 0,
            touched: Some(subject.message()),
            ..round
        }
    }
}

impl Ring {
    pub(super) fn enter(&mut self, seen: Seen, clock: u64) {
        self.entered = clock;
        if let Some(last) = self.rounds.back_mut()
            && last.step.is_none()
            && seen.step.is_none()
            && is_repetition(&last.round, &seen.round)
        {
            last.round = Arc::new(Round {
                times: last.round.times.saturating_add(1),
                began_ns: last.round.began_ns,
                ..(*seen.round).clone()
            });
            return;
        }
        self.rounds.push_back(seen);
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
    }

    pub(super) fn rounds(&self, subject: &ObjectRef) -> impl Iterator<Item = Round> {
        self.rounds.iter().map(|seen| seen.told(subject))
    }
}

/// Did the later round find the same, and do the same, as the one before it?
fn is_repetition(before: &Round, later: &Round) -> bool {
    before.outcome == later.outcome
        && before.error == later.error
        && before.generation == later.generation
        && before.verdicts == later.verdicts
        && before.steps == later.steps
        && later.outcome != note::DONE
}
