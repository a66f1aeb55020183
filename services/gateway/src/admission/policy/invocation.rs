//! Finds the policies for a request: by which bindings, and with which parameters, each is to be evaluated.

use serde_json::Value;
use setpoint_codec::Kind;

use super::hook::{Binding, Hook, Policy};
use super::params;
use crate::admission::Admission;
use crate::admission::Attributes;
use crate::admission::request_data::RequestData;

/// A policy that is to be evaluated.
pub(super) struct Invocation<'h, E> {
    pub policy: &'h Policy<E>,
    pub binding: &'h Binding,
    /// The kind of the resource that the request is matched as.
    pub kind: &'static Kind,
    /// Null if there are none.
    pub params: Value,
}

/// A policy, or one of its bindings, that cannot be evaluated.
pub(super) struct Misconfigured<'h, E> {
    pub policy: &'h Policy<E>,
    pub binding: Option<&'h Binding>,
    pub error: String,
}

impl<E> Misconfigured<'_, E> {
    /// Returns the error, with what it is an error of.
    pub(super) fn message(&self) -> String {
        let which = match self.binding {
            None => "policy",
            Some(_) => "binding",
        };
        format!("failed to configure {which}: {}", self.error)
    }
}

type Found<'h, E> = Vec<Result<Invocation<'h, E>, Misconfigured<'h, E>>>;

/// Returns the evaluations for a request, in the order of the policies and of their bindings.
pub(super) async fn find<'h, E>(
    admission: &Admission,
    request: &Attributes<'_>,
    data: &RequestData,
    hooks: &'h [Hook<E>],
) -> Found<'h, E> {
    let search = Search {
        admission,
        request,
        data,
    };
    let mut found = Vec::new();
    for hook in hooks {
        search.of_policy(hook, &mut found).await;
    }
    found
}

struct Search<'a> {
    admission: &'a Admission,
    request: &'a Attributes<'a>,
    data: &'a RequestData,
}

impl Search<'_> {
    async fn of_policy<'h, E>(&self, hook: &'h Hook<E>, found: &mut Found<'h, E>) {
        let policy = &*hook.policy;
        let mut misconfigured = |binding, error| {
            found.push(Err(Misconfigured {
                policy,
                binding,
                error,
            }));
        };
        let selected = match &policy.constraints {
            Ok(constraints) => constraints.select(self.request, self.data),
            Err(error) => Err(error.clone()),
        };
        let kind = match selected {
            Ok(Some(kind)) => kind,
            Ok(None) => return,
            Err(error) => return misconfigured(None, error),
        };
        let of_params = match params::kind_of_params(self.admission, policy.param_kind.as_ref()) {
            Ok(kind) => kind,
            Err(error) => return misconfigured(None, error),
        };
        for binding in &hook.bindings {
            match self.params_for(binding, of_params).await {
                Ok(all) => found.extend(all.into_iter().map(|params| {
                    Ok(Invocation {
                        policy,
                        binding,
                        kind,
                        params,
                    })
                })),
                Err(error) => found.push(Err(Misconfigured {
                    policy,
                    binding: Some(binding),
                    error,
                })),
            }
        }
    }

    /// Returns the parameters that a binding is evaluated with; none if it does not select the request.
    async fn params_for(
        &self,
        binding: &Binding,
        of_params: Option<&'static Kind>,
    ) -> Result<Vec<Value>, String> {
        let selected = match &binding.constraints {
            None => true,
            Some(Ok(constraints)) => constraints.select(self.request, self.data)?.is_some(),
            Some(Err(error)) => return Err(error.clone()),
        };
        match selected {
            true => params::collect(self.admission, of_params, binding, self.request).await,
            false => Ok(Vec::new()),
        }
    }
}
