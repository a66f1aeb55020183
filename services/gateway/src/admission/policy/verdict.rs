//! The outcome of all policies for one request.

use setpoint_kinds::expressions::Expressions;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, Reason};

use super::evaluation::Objection;
use super::hook::{Binding, Policy};
use super::invocation::Misconfigured;
use crate::admission::Attributes;
use crate::errors;

/// The denials and the warnings so far.
#[derive(Default)]
pub(super) struct Verdict {
    /// The first denial, which is the one that the client gets.
    denial: Option<(Reason, String)>,
    warnings: Vec<String>,
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
        let (reason, message) = match objection {
            Objection::Refused { message, reason } => (reason_of(reason.as_deref()), message),
            Objection::Failed(message) => (Reason::Invalid, message),
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
                // `Audit`: there is no audit log.
                _ => {}
            }
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

    /// Adds the warnings to those of the request.
    ///
    /// # Errors
    /// The first denial.
    pub(super) fn conclude(
        self,
        request: &Attributes<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        warnings.extend(self.warnings);
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

/// Returns the reason of a denial; that of a validation is one of three.
fn reason_of(reason: Option<&str>) -> Reason {
    match reason {
        Some("Forbidden") => Reason::Forbidden,
        Some("RequestEntityTooLarge") => Reason::RequestEntityTooLarge,
        _ => Reason::Invalid,
    }
}
