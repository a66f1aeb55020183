//! The evaluation of one policy for one request and one parameter.

use setpoint_cel::{Evaluation, Value};
use setpoint_kinds::expressions::{Compiled, Expressions};
use setpoint_proto::admissionregistration::Validation;

use super::hook::Policy;
use crate::admission::conditions::{Inputs, all_hold, eval};

/// The cost that the validations of a policy may have together, as upstream's.
const BUDGET: u64 = 10_000_000;
/// The longest message of an expression, in bytes.
const LONGEST_MESSAGE: usize = 5 << 10;

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

/// Returns what a policy says against a request. Failures count unless its failure policy is to ignore them.
pub(super) fn objections(policy: &Policy<Expressions>, inputs: &Inputs<'_>) -> Vec<Objection> {
    let mut found = match &policy.expressions {
        Ok(expressions) => evaluate(expressions, inputs),
        Err(error) => vec![Objection::Failed(error.clone())],
    };
    if policy.ignores_failures {
        found.retain(|one| matches!(one, Objection::Refused { .. }));
    }
    found
}

fn evaluate(expressions: &Expressions, inputs: &Inputs<'_>) -> Vec<Objection> {
    match all_hold(&expressions.conditions, &expressions.variables, inputs) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(error) => return vec![Objection::Failed(error)],
    }
    let mut found = match failed(expressions, inputs) {
        Ok(found) => found,
        Err(error) => return vec![Objection::Failed(error)],
    };
    match annotate(expressions, inputs) {
        Ok(failed) => found.extend(failed.into_iter().map(Objection::AnnotationFailed)),
        Err(error) => return vec![Objection::Failed(error)],
    }
    found
}

/// Evaluates the validations.
fn failed(expressions: &Expressions, inputs: &Inputs<'_>) -> Result<Vec<Objection>, String> {
    let inputs = inputs.of(inputs.namespace);
    let mut evaluation = Evaluation::new(&expressions.variables, &inputs, BUDGET);
    let mut found = Vec::new();
    let mut outcomes = Vec::with_capacity(expressions.validations.len());
    for expression in &expressions.validations {
        outcomes.push(eval(&mut evaluation, expression)?);
    }
    let declared = expressions.declared.iter();
    let parts = declared.zip(outcomes).zip(&expressions.messages);
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

/// Returns the message of a validation that does not hold: that of its expression if it is fit to be shown, its own, or
/// its expression.
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

/// Evaluates the audit annotations. Returns the errors of those that failed; the others are dropped, as there is no
/// audit log.
fn annotate(expressions: &Expressions, inputs: &Inputs<'_>) -> Result<Vec<String>, String> {
    let inputs = inputs.of(inputs.namespace);
    let mut evaluation = Evaluation::new(&expressions.variables, &inputs, BUDGET);
    let mut failed = Vec::new();
    for annotation in &expressions.annotations {
        failed.extend(eval(&mut evaluation, annotation)?.err());
    }
    Ok(failed)
}
