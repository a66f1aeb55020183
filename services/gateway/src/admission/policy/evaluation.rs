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

/// An objection of a policy to a request.
#[derive(Debug, PartialEq)]
pub(super) enum Objection {
    /// A validation does not hold.
    Refused {
        /// The position of the validation in its policy.
        index: usize,
        message: String,
        /// The reason of the error; `None` for `Invalid`.
        reason: Option<String>,
    },
    /// An expression failed.
    Failed {
        /// The position of the validation in its policy; 0 if it is another expression.
        index: usize,
        message: String,
    },
    /// The expression of an audit annotation failed. It denies the request whatever the actions of the binding are.
    AnnotationFailed(String),
}

/// The result of a policy for a request.
#[derive(Debug, Default)]
pub(super) struct Opinion {
    pub(super) objections: Vec<Objection>,
    /// The keys and values of its audit annotations.
    pub(super) annotations: Vec<(String, String)>,
}

impl Opinion {
    fn failed(error: String) -> Self {
        Self {
            objections: vec![Objection::failed(0, error)],
            annotations: Vec::new(),
        }
    }

    /// Adds the audit annotations that have a value, and the errors of those that failed.
    fn annotate(&mut self, expressions: &Expressions, inputs: &Inputs<'_>) -> Result<(), String> {
        let inputs = inputs.of(inputs.namespace);
        let mut evaluation = Evaluation::new(&expressions.variables, &inputs, BUDGET);
        let keys = expressions.annotation_keys.iter();
        for (key, annotation) in keys.zip(&expressions.annotations) {
            match eval(&mut evaluation, annotation)? {
                Ok(Value::String(value)) if !value.trim().is_empty() => {
                    let value = value.trim().to_owned();
                    self.annotations.push((key.clone(), value));
                }
                Ok(_) => {}
                Err(error) => self.objections.push(Objection::AnnotationFailed(error)),
            }
        }
        Ok(())
    }
}

impl Objection {
    fn failed(index: usize, message: String) -> Self {
        Self::Failed { index, message }
    }
}

/// Returns what a policy says about a request. Failures count unless its failure policy is to ignore them.
pub(super) fn opinion(policy: &Policy<Expressions>, inputs: &Inputs<'_>) -> Opinion {
    let mut found = match &policy.expressions {
        Ok(expressions) => evaluate(expressions, inputs).unwrap_or_else(Opinion::failed),
        Err(error) => Opinion::failed(error.clone()),
    };
    if policy.ignores_failures {
        let is_kept = |one: &Objection| matches!(one, Objection::Refused { .. });
        found.objections.retain(is_kept);
    }
    found
}

/// Evaluates the expressions of a policy.
///
/// # Errors
/// That which ends the evaluation.
fn evaluate(expressions: &Expressions, inputs: &Inputs<'_>) -> Result<Opinion, String> {
    if !all_hold(&expressions.conditions, &expressions.variables, inputs)? {
        return Ok(Opinion::default());
    }
    let mut opinion = Opinion {
        objections: failed(expressions, inputs)?,
        annotations: Vec::new(),
    };
    opinion.annotate(expressions, inputs)?;
    Ok(opinion)
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
    for (index, ((validation, outcome), message)) in parts.enumerate() {
        match outcome {
            Ok(Value::Bool(true)) => {}
            Ok(_) => match message_of(&mut evaluation, validation, message.as_ref()) {
                Ok(message) => found.push(Objection::Refused {
                    index,
                    message,
                    reason: validation.reason.clone(),
                }),
                Err(error) => found.push(Objection::failed(index, error)),
            },
            Err(error) => found.push(Objection::failed(index, error)),
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
