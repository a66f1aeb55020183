//! The evaluation of expressions of an environment, with values for its variables.

use std::iter;
use std::sync::Arc;

use serde_json::Value as Json;

use super::computed::Computed;
use super::environment::{Expression, Variables};
use super::evaluate::Frame;
use super::library::authz::{AUTHORIZER, Asked, Authorizer, Decision, Question, RESOURCE_CHECK};
use super::meter::{Failure, Meter};
use super::patch;
use super::values::Val;

/// The value of a variable.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Any JSON.
    Json(&'a Json),
    /// An authorizer.
    Authorizer(&'a dyn Authorizer),
    /// An authorizer's question about a resource.
    ResourceCheck(&'a dyn Authorizer, &'a Question),
}

impl<'a> Input<'a> {
    fn value(self) -> Val<'a> {
        let asked = |authorizer, type_name, question| {
            let decision = Decision::default();
            Val::Asked(Arc::new(Asked {
                type_name,
                authorizer,
                question,
                decision,
            }))
        };
        match self {
            Input::Json(value) => Val::of_json(value),
            Input::Authorizer(authorizer) => asked(authorizer, AUTHORIZER, Question::default()),
            Input::ResourceCheck(authorizer, question) => {
                asked(authorizer, RESOURCE_CHECK, question.clone())
            }
        }
    }
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // They have the names of CEL.
pub enum Value {
    Bool(bool),
    String(String),
    Null,
    /// A value of another type, by the name of that type.
    Other(&'static str),
}

/// The reason for which an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// It failed; with the error in upstream's words.
    Failed(String),
    /// The expressions together cost more than they may: none is to be evaluated any more.
    OutOfBudget,
}

impl Error {
    fn of(failure: Failure) -> Self {
        match failure {
            Failure::Budget => Self::OutOfBudget,
            failure => Self::Failed(failure.to_string()),
        }
    }
}

/// Evaluates expressions that may cost a budget together.
pub struct Evaluation<'a> {
    computed: Computed<'a>,
    meter: Meter,
}

impl<'a> Evaluation<'a> {
    /// Returns an evaluation with the values of the given variables, in the order of the environment.
    pub fn new(variables: &'a Variables, inputs: &[Input<'a>], budget: u64) -> Self {
        let globals = inputs.iter().map(|input| input.value());
        // The first one stands for the computed variables, which have slots of their own.
        let globals = iter::once(Val::Null).chain(globals);
        Self {
            computed: Computed::new(&variables.0, globals.collect()),
            meter: Meter::with_budget(budget),
        }
    }

    /// Evaluates an expression of the environment.
    ///
    /// # Errors
    /// If it has no value.
    pub fn eval(&mut self, expression: &Expression) -> Result<Value, Error> {
        self.value(expression).map(|value| Value::of(&value))
    }

    /// Evaluates an expression whose value is wanted as JSON.
    ///
    /// # Errors
    /// If it has no value, or if it cannot be JSON.
    pub fn json(&mut self, expression: &Expression) -> Result<Json, Error> {
        let value = self.value(expression)?;
        patch::json(&value, &mut self.meter).map_err(Error::of)
    }

    /// Evaluates an expression that makes a patch: an object of the type `Object`, or operations of the type
    /// `JSONPatch`.
    ///
    /// # Errors
    /// If it has no value, if the types of its objects are not those of their fields, or if it cannot be JSON.
    pub fn patch(&mut self, expression: &Expression) -> Result<Json, Error> {
        let value = self.value(expression)?;
        patch::document(&value, &mut self.meter).map_err(Error::of)
    }

    fn value(&mut self, expression: &Expression) -> Result<Val<'a>, Error> {
        self.meter.begin();
        let program = &expression.program;
        let mut frame = Frame {
            slots: self.computed.slots(program.slots),
            meter: &mut self.meter,
            computed: Some(&self.computed),
        };
        match frame.eval(&program.expr) {
            Ok(value) => Ok(value),
            Err(Failure::Budget) => Err(Error::OutOfBudget),
            Err(failure) => {
                let source = &expression.source;
                let text = format!("expression '{source}' resulted in error: {failure}");
                Err(Error::Failed(text))
            }
        }
    }
}

impl Value {
    pub(super) fn of(value: &Val<'_>) -> Self {
        match value {
            Val::Bool(flag) => Value::Bool(*flag),
            Val::String(text) => Value::String((**text).to_owned()),
            Val::Null => Value::Null,
            other => Value::Other(other.type_name()),
        }
    }
}

#[cfg(test)]
mod tests;
