//! Finds the policies for a request, and asks them.

use std::sync::Arc;

use prost::Message as _;
use serde_json::Value;
use setpoint_codec::{Kind, kind_of};
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;
use setpoint_schema::expression::Question;

use super::constraints::Surroundings;
use super::evaluation::{self, Variables};
use super::hooks::{Binding, Hook, Snapshot};
use super::request::{Values, namespace_object};
use super::verdict::Verdict;
use super::{Attributes, authorizer, params};
use crate::heavy::heavy;
use crate::registry::{AtLeast, Cached, Registry, Target, errors};

impl Registry {
    /// Returns the policies that judge requests for a target; `None` if there are none.
    ///
    /// # Errors
    /// If the cache is not there yet.
    pub(crate) async fn policies_for(
        &self,
        target: &Target,
    ) -> Result<Option<Arc<Snapshot>>, ApiError> {
        match is_exempt(target.served) {
            true => Ok(None),
            false => self.hooks().current(self.cache()).await,
        }
    }

    /// Lets policies judge a request that is about to be committed. Returns their warnings.
    ///
    /// # Errors
    /// If a policy denies it: `Invalid`, or the reason that the policy names.
    pub(crate) async fn admit(
        &self,
        request: &Attributes<'_>,
        policies: &Snapshot,
    ) -> Result<Vec<String>, ApiError> {
        // Boxed, since most requests never get here.
        Box::pin(self.dispatch(request, policies)).await
    }

    async fn dispatch(
        &self,
        request: &Attributes<'_>,
        snapshot: &Snapshot,
    ) -> Result<Vec<String>, ApiError> {
        let namespace = self.namespace_of(request).await?;
        let around = Surroundings {
            namespace: namespace.as_ref().map(|found| found.labels().clone()),
            equivalents: request.equivalents(),
        };
        let mut dispatch = Dispatch {
            registry: self,
            request,
            namespace: match &namespace {
                Some(found) if !request.is_of_namespace() => {
                    let found = errors::readable(Namespace::decode(found.raw.as_ref()))?;
                    namespace_object(found)
                }
                _ => Value::Null,
            },
            around,
            resource: authorizer::about(request),
            values: Vec::new(),
            verdict: Verdict::default(),
        };
        for hook in &snapshot.hooks {
            dispatch.ask(hook).await;
        }
        dispatch.verdict.into_result(request)
    }

    /// Returns the namespace of a request, if it has one that exists.
    async fn namespace_of(
        &self,
        request: &Attributes<'_>,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        match request.namespace() {
            "" => Ok(None),
            name => {
                let key = Key::new("", name);
                let cache = self.cache();
                cache.get(kind_of::<Namespace>(), &key, AtLeast::Any).await
            }
        }
    }
}

/// Returns whether policies never judge requests for a kind: they could otherwise lock their own administrators out.
fn is_exempt(kind: &Kind) -> bool {
    const EXEMPT: [&str; 6] = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    kind.group == "admissionregistration.k8s.io" && EXEMPT.contains(&kind.kind.as_str())
}

/// A request that policies are judging.
struct Dispatch<'a> {
    registry: &'a Registry,
    request: &'a Attributes<'a>,
    around: Surroundings,
    /// The question about the resource of the request, for an authorizer.
    resource: Question,
    /// The variable `namespaceObject`; null for requests about objects without a namespace.
    namespace: Value,
    /// The values for the resources that the request was matched with.
    values: Vec<Values>,
    verdict: Verdict,
}

impl Dispatch<'_> {
    /// Asks a policy, for each of its bindings that selects the request.
    async fn ask(&mut self, hook: &Hook) {
        let policy = &hook.policy;
        let selected = match &policy.constraints {
            Ok(constraints) => constraints.select(self.request, &self.around),
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
            Some(Ok(constraints)) => constraints.select(self.request, &self.around)?.is_some(),
            Some(Err(error)) => return Err(error.clone()),
        };
        if !selected {
            return Ok(());
        }
        let found = params::collect(self.registry, of_params, binding, self.request).await?;
        if found.is_empty() {
            return Ok(());
        }
        let at = self.values_as(kind).await?;
        for params in &found {
            let Some(values) = self.values.get(at) else {
                continue;
            };
            let variables = Variables {
                values,
                namespace: &self.namespace,
                params,
                resource: &self.resource,
            };
            let judge = || evaluation::objections(&hook.policy, &variables);
            // The work does not depend on the size of the objects alone: expressions may loop.
            for objection in heavy(usize::MAX, judge).await {
                self.verdict.object(&hook.policy, binding, objection);
            }
        }
        Ok(())
    }

    /// Returns the index of the values for a resource, which are made once.
    async fn values_as(&mut self, kind: &'static Kind) -> Result<usize, String> {
        let known = self.values.iter().position(|values| *values.kind == *kind);
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Values::of(self.registry, self.request, kind).await;
        let made =
            made.map_err(|error| format!("failed to convert object version: {}", error.message))?;
        self.values.push(made);
        Ok(self.values.len() - 1)
    }
}
