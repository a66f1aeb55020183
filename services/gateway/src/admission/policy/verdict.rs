//! The outcome of all policies for one request.

use std::collections::BTreeMap;

use serde::Serialize;
use setpoint_kinds::expressions::Expressions;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, Reason};

use super::evaluation::Objection;
use super::hook::{Binding, Policy};
use super::invocation::Misconfigured;
use crate::admission::Attributes;
use crate::errors;
use crate::request::audit;

/// The annotation of a validation that does not hold, if an action of the binding is `Audit`.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The largest length of the value of an audit annotation, in bytes, as upstream.
const LONGEST_VALUE: usize = 10 << 10;

/// The value of [`FAILURE`], in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [String],
}

/// The denials and the warnings so far.
#[derive(Default)]
pub(super) struct Verdict {
    /// The first denial, which is the one that the client gets.
    denial: Option<(Reason, String)>,
    warnings: Vec<String>,
    /// The values of each audit annotation; several if parameters differ.
    annotations: BTreeMap<String, Vec<String>>,
}

impl Verdict {
    /// Records that a policy, or one of its bindings, cannot be evaluated.
    pub(super) fn misconfigured(&mut self, found: &Misconfigured<'_, Expressions>) {
        if !found.policy.ignores_failures {
            let error = found.message();
            self.deny(found.policy, found.binding, Reason::Invalid, &error);
        }
    }

    /// Records what a policy says against the request; the actions of the binding decide what follows from it.
    pub(super) fn object(
        &mut self,
        policy: &Policy<Expressions>,
        binding: &Binding,
        objection: Objection,
    ) {
        let (index, reason, message) = match objection {
            Objection::Refused {
                index,
                message,
                reason,
            } => (index, reason_of(reason.as_deref()), message),
            Objection::Failed { index, message } => (index, Reason::Invalid, message),
            Objection::AnnotationFailed(message) => {
                return self.deny(policy, Some(binding), Reason::Invalid, &message);
            }
        };
        for action in &binding.actions {
            match action.as_str() {
                "Deny" => self.deny(policy, Some(binding), reason, &message),
                "Warn" => self.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                    policy.name, binding.name
                )),
                "Audit" => audit::annotate(FAILURE, || failure(policy, binding, index, &message)),
                _ => {}
            }
        }
    }

    /// Adds a value to an audit annotation of a policy.
    pub(super) fn annotate(&mut self, policy: &Policy<Expressions>, key: &str, mut value: String) {
        value.truncate(value.floor_char_boundary(LONGEST_VALUE));
        let key = format!("{}/{key}", policy.name);
        let values = self.annotations.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }

    fn deny(
        &mut self,
        policy: &Policy<Expressions>,
        binding: Option<&Binding>,
        reason: Reason,
        why: &str,
    ) {
        let policy = &policy.name;
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name));
        let with = with.unwrap_or_default();
        self.denial.get_or_insert_with(|| {
            let message =
                format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {why}");
            (reason, message)
        });
    }

    /// Adds the warnings to those of the request, and the annotations to its audit.
    ///
    /// # Errors
    /// The first denial.
    pub(super) fn conclude(
        self,
        request: &Attributes<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        warnings.extend(self.warnings);
        for (key, values) in self.annotations {
            audit::annotate(key, || values.join(", "));
        }
        let Some((reason, message)) = self.denial else {
            return Ok(());
        };
        let cause = StatusCause {
            message: message.clone(),
            ..Default::default()
        };
        let mut error = errors::forbidden(request.target, &message, Some(cause));
        error.reason = reason;
        Err(error)
    }
}

fn failure(
    policy: &Policy<Expressions>,
    binding: &Binding,
    expression_index: usize,
    message: &str,
) -> String {
    let failure = Failure {
        message,
        policy: &policy.name,
        binding: &binding.name,
        expression_index,
        validation_actions: &binding.actions,
    };
    serde_json::to_string(&[failure]).unwrap_or_default()
}

/// Returns the reason of a denial; that of a validation is one of three.
fn reason_of(reason: Option<&str>) -> Reason {
    match reason {
        Some("Forbidden") => Reason::Forbidden,
        Some("RequestEntityTooLarge") => Reason::RequestEntityTooLarge,
        _ => Reason::Invalid,
    }
}
