//! Finds the policies for a request, and asks them.

use std::sync::Arc;

use setpoint_codec::Kind;
use setpoint_proto::ApiError;

use super::evaluation;
use super::hook::{Binding, Hook};
use super::params;
use super::verdict::Verdict;
use crate::admission::Attributes;
use crate::admission::conditions::Inputs;
use crate::admission::request::{Values, Versions};
use crate::admission::surroundings::Surroundings;
use crate::heavy::heavy;
use crate::registry::Registry;

/// Lets policies judge a request that is about to be committed. Upstream's never see reviews.
///
/// # Errors
/// If a policy denies it: `Invalid`, or the reason that the policy names.
pub(in crate::admission) async fn judge(
    registry: &Registry,
    request: &Attributes<'_>,
    around: &Surroundings,
    hooks: &[Hook],
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if request.target.served.is_review {
        return Ok(());
    }
    let mut dispatch = Dispatch {
        registry,
        request,
        around,
        versions: Versions::default(),
        verdict: Verdict::default(),
    };
    for hook in hooks {
        dispatch.ask(hook).await;
    }
    dispatch.verdict.conclude(request, warnings)
}

/// A request that policies are judging.
struct Dispatch<'a> {
    registry: &'a Registry,
    request: &'a Attributes<'a>,
    around: &'a Surroundings,
    versions: Versions,
    verdict: Verdict,
}

impl Dispatch<'_> {
    /// Asks a policy, for each of its bindings that selects the request.
    async fn ask(&mut self, hook: &Hook) {
        let policy = &hook.policy;
        let selected = match &policy.constraints {
            Ok(constraints) => constraints.select(self.request, self.around),
            Err(error) => Err(error.clone()),
        };
        let kind = match selected {
            Ok(Some(kind)) => kind,
            Ok(None) => return,
            Err(error) => return self.verdict.misconfigured(policy, None, &error),
        };
        let of_params = match params::kind_of_params(self.registry, policy) {
            Ok(kind) => kind,
            Err(error) => return self.verdict.misconfigured(policy, None, &error),
        };
        for binding in &hook.bindings {
            if let Err(error) = self.ask_for(hook, binding, kind, of_params).await {
                self.verdict.misconfigured(policy, Some(binding), &error);
            }
        }
    }

    async fn ask_for(
        &mut self,
        hook: &Hook,
        binding: &Binding,
        kind: &'static Kind,
        of_params: Option<&'static Kind>,
    ) -> Result<(), String> {
        let selected = match &binding.constraints {
            None => true,
            Some(Ok(constraints)) => constraints.select(self.request, self.around)?.is_some(),
            Some(Err(error)) => return Err(error.clone()),
        };
        if !selected {
            return Ok(());
        }
        let found = params::collect(self.registry, of_params, binding, self.request).await?;
        if found.is_empty() {
            return Ok(());
        }
        let values = self.values_as(kind).await?;
        for params in &found {
            let inputs = Inputs {
                values: &values,
                namespace: &self.around.namespace_object,
                params,
                resource: &self.around.resource,
            };
            let judge = || evaluation::objections(&hook.policy, &inputs);
            // The work does not depend on the size of the objects alone: expressions may loop.
            for objection in heavy(usize::MAX, judge).await {
                self.verdict.object(&hook.policy, binding, objection);
            }
        }
        Ok(())
    }

    async fn values_as(&mut self, kind: &'static Kind) -> Result<Arc<Values>, String> {
        let made = self.versions.of(self.registry, self.request, kind).await;
        made.map_err(|error| format!("failed to convert object version: {}", error.message))
    }
}
