//! The errors of mutating policies for one request.

use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, Reason, StatusOverride};

use crate::admission::Attributes;
use crate::admission::policy::hook::{Binding, Policy};
use crate::admission::policy::invocation::Misconfigured;
use crate::errors;

/// The errors so far, except those that are ignored. The client gets the first one, and all as causes.
#[derive(Default)]
pub(super) struct Failures {
    first: Option<Reason>,
    messages: Vec<String>,
}

impl Failures {
    /// Records that a policy, or one of its bindings, cannot be evaluated.
    pub(super) fn misconfigured<E>(&mut self, found: &Misconfigured<'_, E>) {
        self.add(
            found.policy,
            found.binding,
            Reason::Forbidden,
            &found.message(),
        );
    }

    /// Records that an expression has failed, or that its patch cannot be applied.
    pub(super) fn failed<E>(&mut self, policy: &Policy<E>, binding: &Binding, error: &str) {
        self.add(policy, Some(binding), Reason::Invalid, error);
    }

    fn add<E>(
        &mut self,
        policy: &Policy<E>,
        binding: Option<&Binding>,
        reason: Reason,
        error: &str,
    ) {
        let name = &policy.name;
        if policy.ignores_failures {
            tracing::warn!(policy = name, error, "a policy failed, which is ignored");
            return;
        }
        self.first.get_or_insert(reason);
        self.messages.push(match binding {
            Some(binding) => {
                let binding = &binding.name;
                format!("policy '{name}' with binding '{binding}' denied request: {error}")
            }
            None => format!("policy {name:?} denied request: {error}"),
        });
    }

    /// Ends the evaluation of policies.
    ///
    /// # Errors
    /// If one has failed. As upstream's, the error has the status of `Forbidden` and the reason of the first failure.
    pub(super) fn conclude(self, request: &Attributes<'_>) -> Result<(), ApiError> {
        let (Some(reason), Some(first)) = (self.first, self.messages.first()) else {
            return Ok(());
        };
        let mut error = errors::forbidden(request.target, "", None);
        error.message.clone_from(first);
        if reason != Reason::Forbidden {
            error.status_override = Some(Box::new(StatusOverride {
                code: Reason::Forbidden.http(),
                reason: reason.name().to_owned(),
            }));
        }
        if let Some(details) = &mut error.details {
            let causes = self.messages.into_iter().map(|message| StatusCause {
                message,
                ..Default::default()
            });
            details.causes.extend(causes);
        }
        Err(error)
    }
}
