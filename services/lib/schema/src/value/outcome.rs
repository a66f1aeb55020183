//! The result of a check.

use std::collections::HashSet;

use crate::violation::{Kind, Violation};

/// The errors that are kept of one object.
const MAX_ERRORS: usize = 1_000;

/// The errors of a check, each once, and the number of checks that were made.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    errors: Vec<Violation>,
    seen: HashSet<(Kind, String, String)>,
    pub(super) checks: usize,
}

impl Outcome {
    /// Returns the outcome of a check that counts for itself.
    pub(super) fn counted() -> Self {
        Self {
            checks: 1,
            ..Self::default()
        }
    }

    pub(super) fn failed(error: Violation) -> Self {
        let mut outcome = Self::default();
        outcome.fail(error);
        outcome
    }

    pub(super) fn fail(&mut self, error: Violation) {
        let same = (error.kind, error.path.clone(), error.detail.clone());
        if self.errors.len() < MAX_ERRORS && self.seen.insert(same) {
            self.errors.push(error);
        }
    }

    pub(super) fn count(&mut self) {
        self.checks += 1;
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.checks += other.checks;
        other.errors.into_iter().for_each(|error| self.fail(error));
    }

    pub(super) fn merge_counted(&mut self, other: Outcome) {
        self.merge(other);
        self.count();
    }

    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Drops the errors.
    pub(super) fn forgive(&mut self) {
        self.errors.clear();
        self.seen.clear();
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.errors
    }
}
