//! The evaluation of one policy for one request and one parameter.

use serde_json::Value as Json;
use setpoint_proto::admissionregistration::Validation;
use setpoint_schema::expression::{Error, Evaluation, Expression, Input, Question, Value};

use super::authorizer::Everything;
use super::compiled::{Compiled, Expressions};
use super::hooks::Policy;
use super::request::Values;

/// The cost that the validations of a policy may have together, as upstream's.
const BUDGET: u64 = 10_000_000;
/// The cost that the match conditions of a policy may have together, as upstream's.
const CONDITIONS_BUDGET: u64 = 2_500_000;
/// The longest message of an expression, in bytes.
const LONGEST_MESSAGE: usize = 5 << 10;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What a policy says against a request.
#[derive(Debug, PartialEq)]
pub(super) enum Objection {
    /// A validation does not hold.
    Refused {
        message: String,
        /// The reason of the error; `None` for `Invalid`.
        reason: Option<String>,
    },
    /// An expression failed.
    Failed(String),
    /// The expression of an audit annotation failed. It denies the request whatever the actions of the binding are.
    AnnotationFailed(String),
}

/// The values of the variables of a policy.
pub(super) struct Variables<'a> {
    pub values: &'a Values,
    pub namespace: &'a Json,
    pub params: &'a Json,
    /// The question about the resource of the request.
    pub resource: &'a Question,
}

impl<'a> Variables<'a> {
    /// Returns the values in the order of [`super::environment::of_policy`].
    fn inputs(&self, namespace: &'a Json) -> [Input<'a>; 7] {
        [
            Input::Json(&self.values.object),
            Input::Json(&self.values.old),
            Input::Json(namespace),
            Input::Json(&self.values.request),
            Input::Json(self.params),
            Input::Authorizer(&Everything),
            Input::ResourceCheck(&Everything, self.resource),
        ]
    }
}

/// Returns what a policy says against a request. Failures count unless its failure policy is to ignore them.
pub(super) fn objections(policy: &Policy, variables: &Variables<'_>) -> Vec<Objection> {
    let mut found = match &policy.expressions {
        Ok(expressions) => evaluate(policy, expressions, variables),
        Err(error) => vec![Objection::Failed(error.clone())],
    };
    if policy.ignores_failures() {
        found.retain(|one| matches!(one, Objection::Refused { .. }));
    }
    found
}

fn evaluate(
    policy: &Policy,
    expressions: &Expressions,
    variables: &Variables<'_>,
) -> Vec<Objection> {
    match is_matched(expressions, variables) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(error) => return vec![Objection::Failed(error)],
    }
    let judged = judge(&policy.object.spec.validations, expressions, variables);
    let mut found = match judged {
        Ok(found) => found,
        Err(error) => return vec![Objection::Failed(error)],
    };
    match annotate(expressions, variables) {
        Ok(failed) => found.extend(failed.into_iter().map(Objection::AnnotationFailed)),
        Err(error) => return vec![Objection::Failed(error)],
    }
    found
}

/// Returns whether all match conditions hold. One that is false decides, whichever failed before; they do not see the namespace.
fn is_matched(expressions: &Expressions, variables: &Variables<'_>) -> Result<bool, String> {
    let inputs = variables.inputs(&Json::Null);
    let mut evaluation = Evaluation::new(&expressions.variables, &inputs, CONDITIONS_BUDGET);
    let mut failed = Vec::new();
    for condition in &expressions.conditions {
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

/// Evaluates the validations.
fn judge(
    validations: &[Validation],
    expressions: &Expressions,
    variables: &Variables<'_>,
) -> Result<Vec<Objection>, String> {
    let inputs = variables.inputs(variables.namespace);
    let mut evaluation = Evaluation::new(&expressions.variables, &inputs, BUDGET);
    let mut found = Vec::new();
    let mut outcomes = Vec::with_capacity(validations.len());
    for expression in &expressions.validations {
        outcomes.push(eval(&mut evaluation, expression)?);
    }
    let parts = validations.iter().zip(outcomes).zip(&expressions.messages);
    for ((validation, outcome), message) in parts {
        match outcome {
            Ok(Value::Bool(true)) => {}
            Ok(_) => match message_of(&mut evaluation, validation, message.as_ref()) {
                Ok(message) => found.push(Objection::Refused {
                    message,
                    reason: validation.reason.clone(),
                }),
                Err(error) => found.push(Objection::Failed(error)),
            },
            Err(error) => found.push(Objection::Failed(error)),
        }
    }
    Ok(found)
}

/// Returns the message of a validation that does not hold: that of its expression if it is fit to be shown, its own, or its expression.
fn message_of(
    evaluation: &mut Evaluation<'_>,
    validation: &Validation,
    expression: Option<&Compiled>,
) -> Result<String, String> {
    if let Some(expression) = expression {
        let made = eval(evaluation, expression);
        let made = made.map_err(|error| format!("failed messageExpression: {error}"))?;
        if let Ok(Value::String(text)) = made {
            let text = text.trim();
            if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
                return Ok(text.to_owned());
            }
        }
    }
    Ok(match validation.message.trim() {
        "" => format!("failed expression: {}", validation.expression.trim()),
        message => message.to_owned(),
    })
}

/// Evaluates the audit annotations. Returns the errors of those that failed; the others are dropped, as there is no audit log.
fn annotate(expressions: &Expressions, variables: &Variables<'_>) -> Result<Vec<String>, String> {
    let inputs = variables.inputs(variables.namespace);
    let mut evaluation = Evaluation::new(&expressions.variables, &inputs, BUDGET);
    let mut failed = Vec::new();
    for annotation in &expressions.annotations {
        failed.extend(eval(&mut evaluation, annotation)?.err());
    }
    Ok(failed)
}

/// Evaluates an expression.
///
/// # Errors
/// If the budget is spent. The inner error is that of the expression.
fn eval(
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
