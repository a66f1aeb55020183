//! The last reconciles of one object.

use std::collections::VecDeque;
use std::sync::Arc;

use setpoint_proto::setpoint::{ObjectRef, Reconcile, ReconcileOutcome, Step};

use super::ENTRIES;

/// The last entries of one object, newest last.
#[derive(Debug, Default)]
pub(super) struct Ring {
    entries: VecDeque<Entry>,
    /// The decision log's clock at the last entry.
    pub(super) entered: u64,
}

/// A reconcile, as it is listed for one object.
#[derive(Debug)]
pub(super) struct Entry {
    reconcile: Arc<Reconcile>,
    /// The step that touched the object; `None` if the object itself was reconciled.
    step: Option<Step>,
}

impl Entry {
    pub(super) fn whole(reconcile: &Arc<Reconcile>) -> Self {
        let reconcile = reconcile.clone();
        Self {
            reconcile,
            step: None,
        }
    }

    pub(super) fn touched(reconcile: &Arc<Reconcile>, step: Step) -> Self {
        let (reconcile, step) = (reconcile.clone(), Some(step));
        Self { reconcile, step }
    }

    fn message(&self, subject: &ObjectRef) -> Reconcile {
        let reconcile = (*self.reconcile).clone();
        let Some(step) = &self.step else {
            return reconcile;
        };
        Reconcile {
            steps: vec![step.clone()],
            more_steps: 0,
            touched: Some(subject.clone()),
            ..reconcile
        }
    }
}

impl Ring {
    pub(super) fn enter(&mut self, entry: Entry, clock: u64) {
        self.entered = clock;
        if let Some(last) = self.entries.back_mut()
            && last.step.is_none()
            && entry.step.is_none()
            && is_repetition(&last.reconcile, &entry.reconcile)
        {
            last.reconcile = Arc::new(Reconcile {
                times: last.reconcile.times.saturating_add(1),
                began_ns: last.reconcile.began_ns,
                ..(*entry.reconcile).clone()
            });
            return;
        }
        self.entries.push_back(entry);
        if self.entries.len() > ENTRIES {
            self.entries.pop_front();
        }
    }

    pub(super) fn reconciles(&self, subject: &ObjectRef) -> impl Iterator<Item = Reconcile> {
        self.entries.iter().map(|entry| entry.message(subject))
    }
}

/// Returns whether the later reconcile observed and did the same as the one before it, without executing a plan.
fn is_repetition(before: &Reconcile, later: &Reconcile) -> bool {
    before.outcome == later.outcome
        && before.error == later.error
        && before.generation == later.generation
        && before.verdicts == later.verdicts
        && before.steps == later.steps
        && later.outcome() != ReconcileOutcome::Done
}
