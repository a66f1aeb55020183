//! Variables that are computed when an expression reads them, once for an evaluation.

use std::cell::RefCell;

use super::environment::Variable;
use super::evaluate::{Frame, Outcome, unset};
use super::meter::{Failure, Meter};
use super::values::Val;
use crate::go::quote;

/// The variables of an environment, with the values that have been computed.
pub(super) struct Computed<'a> {
    variables: &'a [Variable],
    globals: Vec<Val<'a>>,
    values: RefCell<Vec<Option<Outcome<'a>>>>,
}

impl<'a> Computed<'a> {
    pub(super) fn new(variables: &'a [Variable], globals: Vec<Val<'a>>) -> Self {
        Self {
            values: RefCell::new(vec![None; variables.len()]),
            variables,
            globals,
        }
    }

    /// Returns the slots of a program: those of the given variables have values.
    pub(super) fn slots(&self, count: usize) -> Vec<Outcome<'a>> {
        let mut slots: Vec<_> = self.globals.iter().cloned().map(Ok).collect();
        slots.resize(count.max(slots.len()), Ok(Val::Null));
        slots
    }

    /// Returns the value of the variable in a slot. The slots of the computed variables follow those of the given ones.
    pub(super) fn get(&self, slot: usize, meter: &mut Meter) -> Outcome<'a> {
        let index = slot.checked_sub(self.globals.len());
        let Some((index, variable)) =
            index.and_then(|index| Some((index, self.variables.get(index)?)))
        else {
            return unset();
        };
        let known = self.values.borrow().get(index).cloned().flatten();
        if let Some(known) = known {
            return known;
        }
        let outcome = self.compute(variable, meter);
        if let Some(value) = self.values.borrow_mut().get_mut(index) {
            *value = Some(outcome.clone());
        }
        outcome
    }

    fn compute(&self, variable: &Variable, meter: &mut Meter) -> Outcome<'a> {
        let name = quote(&variable.name);
        let program = variable.program.as_ref().map_err(|error| {
            let text = format!("composited variable {name} fails to compile: {error}");
            Failure::Error(text)
        })?;
        let slots = self.slots(program.slots);
        let outcome = meter.inner(|meter| {
            let computed = Some(self);
            let mut frame = Frame {
                slots,
                meter,
                computed,
            };
            frame.eval(&program.expr)
        });
        outcome.map_err(|failure| match failure {
            Failure::Budget => Failure::Budget,
            other => {
                let text = format!("composited variable {name} fails to evaluate: {other}");
                Failure::Error(text)
            }
        })
    }
}
