//! The work of expressions, in upstream's units of cost.

use std::fmt;

/// The cost that one expression may have.
pub(super) const PER_CALL: u64 = 1_000_000;
/// The cost that the rules of one object may have.
pub(super) const PER_OBJECT: u64 = 10_000_000;

/// The parts of expressions that may be evaluated for each unit: a constant costs nothing, but takes time.
const STEPS: u64 = 10;

/// The cost per byte of a string that is read once: a tenth.
const BYTES: u64 = 10;

/// The reason for which an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// An error, which `&&` and `||` may absorb.
    Error(String),
    /// The arguments of a call have types that no overload has.
    NoOverload,
    /// The expression costs more than one may.
    CallLimit,
    /// The rules of the object cost more than those of one object may.
    Budget,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Failure::Error(text) => text,
            Failure::NoOverload => "no such overload",
            Failure::CallLimit => "operation cancelled: actual cost limit exceeded",
            Failure::Budget => "the cost budget is spent",
        })
    }
}

impl Failure {
    pub(super) fn error(text: &str) -> Self {
        Failure::Error(text.to_owned())
    }

    /// Whether no further expression may be evaluated.
    pub fn is_final(&self) -> bool {
        matches!(self, Failure::CallLimit | Failure::Budget)
    }
}

/// Returns the cost of reading a string or a list once.
pub(super) fn scan(size: u64) -> u64 {
    size.div_ceil(BYTES)
}

/// Counts the cost of expressions. Every step of an evaluation, and every value that it makes, is paid before it is
/// done: this bounds time and memory.
#[derive(Debug)]
pub struct Meter {
    call: u64,
    object: u64,
    call_steps: u64,
    object_steps: u64,
}

impl Default for Meter {
    /// Returns a meter for the rules of one object.
    fn default() -> Self {
        Self::with_budget(PER_OBJECT)
    }
}

impl Meter {
    /// Returns a meter for expressions that may cost `budget` together.
    pub(super) fn with_budget(budget: u64) -> Self {
        Self {
            call: PER_CALL,
            object: budget,
            call_steps: PER_CALL * STEPS,
            object_steps: budget.saturating_mul(STEPS),
        }
    }

    /// Runs an expression inside of another, with a limit of its own.
    pub(super) fn inner<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (self.call, self.call_steps);
        self.begin();
        let result = run(self);
        (self.call, self.call_steps) = outer;
        result
    }

    /// Begins an expression.
    pub(super) fn begin(&mut self) {
        self.call = PER_CALL;
        self.call_steps = PER_CALL * STEPS;
    }

    /// Returns what was spent of the budget of one object.
    #[cfg(test)]
    pub(super) fn spent(&self) -> u64 {
        PER_OBJECT - self.object
    }

    /// Whether nothing is left for the rules of the object.
    pub fn is_spent(&self) -> bool {
        self.object == 0
    }

    /// Counts a part of an expression that is evaluated.
    pub(super) fn step(&mut self) -> Result<(), Failure> {
        self.call_steps = self.call_steps.checked_sub(1).ok_or(Failure::CallLimit)?;
        self.object_steps = self.object_steps.checked_sub(1).ok_or(Failure::Budget)?;
        Ok(())
    }

    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        let (call, object) = (self.call.checked_sub(cost), self.object.checked_sub(cost));
        self.call = call.unwrap_or(0);
        self.object = object.unwrap_or(0);
        match (call, object) {
            (None, _) => Err(Failure::CallLimit),
            (_, None) => Err(Failure::Budget),
            _ => Ok(()),
        }
    }
}
