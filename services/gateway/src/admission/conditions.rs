//! Match conditions: expressions that all have to hold for a policy or webhook to be asked about a request.

use serde_json::Value as Json;
use setpoint_cel::{Error, Evaluation, Expression, Input, Question, Value, Variables};
use setpoint_kinds::expressions::Compiled;

use super::authorizer::OfUser;
use super::request::Values;

/// The cost that the match conditions of a policy or webhook may have together, as upstream's.
const BUDGET: u64 = 2_500_000;
/// The error of expressions that cost more than they may together.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The values of the variables of a request.
pub(super) struct Inputs<'a> {
    pub values: &'a Values,
    /// The variable `namespaceObject`.
    pub namespace: &'a Json,
    pub params: &'a Json,
    pub authorizer: &'a OfUser,
    /// The question about the resource of the request.
    pub resource: &'a Question,
}

impl<'a> Inputs<'a> {
    /// Returns the values in the order of the variables of [`setpoint_kinds::expressions`].
    pub(super) fn of(&self, namespace: &'a Json) -> [Input<'a>; 7] {
        [
            Input::Json(&self.values.object),
            Input::Json(&self.values.old),
            Input::Json(namespace),
            Input::Json(&self.values.request),
            Input::Json(self.params),
            Input::Authorizer(self.authorizer),
            Input::ResourceCheck(self.authorizer, self.resource),
        ]
    }
}

/// Returns whether all conditions hold. One that is false decides, whichever failed before; they do not see the
/// namespace.
///
/// # Errors
/// Those of the expressions that failed.
pub(super) fn all_hold(
    conditions: &[Compiled],
    variables: &Variables,
    inputs: &Inputs<'_>,
) -> Result<bool, String> {
    let inputs = inputs.of(&Json::Null);
    let mut evaluation = Evaluation::new(variables, &inputs, BUDGET);
    let mut failed = Vec::new();
    for condition in conditions {
        match eval(&mut evaluation, condition)? {
            Ok(Value::Bool(true)) => {}
            Ok(_) => return Ok(false),
            Err(error) => failed.push(error),
        }
    }
    match failed.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Evaluates an expression.
///
/// # Errors
/// If the budget is spent. The inner error is that of the expression.
pub(super) fn eval(
    evaluation: &mut Evaluation<'_>,
    expression: &Compiled,
) -> Result<Result<Value, String>, String> {
    let expression: &Expression = match expression {
        Ok(expression) => expression,
        Err(error) => return Ok(Err(format!("compilation error: {error}"))),
    };
    match evaluation.eval(expression) {
        Ok(value) => Ok(Ok(value)),
        Err(Error::Failed(error)) => Ok(Err(error)),
        Err(Error::OutOfBudget) => Err(OUT_OF_BUDGET.to_owned()),
    }
}
