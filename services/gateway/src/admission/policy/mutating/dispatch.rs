//! Evaluates the mutating policies for a request: one after the other, each sees what the others have changed.

use std::sync::Arc;

use setpoint_codec::Object;
use setpoint_kinds::expressions::Mutations;
use setpoint_proto::ApiError;

use super::failure::Failures;
use super::patch::{Failure, patched};
use crate::admission::Admission;
use crate::admission::conditions::{Inputs, all_hold};
use crate::admission::policy::hook::Hook;
use crate::admission::policy::invocation::{self, Invocation};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::request::{Values, Versions};
use crate::admission::request_data::RequestData;
use crate::admission::{Attributes, Operation, internal, replacement};
use crate::offload::offload;

/// A pass of the policies over a request.
pub(in crate::admission) struct Pass<'a> {
    pub admission: &'a Admission,
    /// The request; its object is that of the call of `mutate`.
    pub request: Attributes<'a>,
    pub data: &'a RequestData,
    pub passes: &'a mut Reinvocation,
}

/// Lets policies change the object of a request. They see no deletions and no reviews, as upstream's.
///
/// # Errors
/// If one of them fails, and its failures are not ignored.
pub(in crate::admission) async fn mutate(
    pass: Pass<'_>,
    hooks: &[Hook<Mutations>],
    object: &mut Box<dyn Object>,
) -> Result<(), ApiError> {
    let request = pass.request.with_object(Some(&**object));
    if request.operation == Operation::Delete || request.target.served.is_review {
        return Ok(());
    }
    let mut failures = Failures::default();
    let mut invocations = Vec::new();
    for found in invocation::find(pass.admission, &request, pass.data, hooks).await {
        match found {
            Ok(invocation) => invocations.push(invocation),
            Err(misconfigured) => failures.misconfigured(&misconfigured),
        }
    }
    let mut dispatch = Dispatch {
        pass,
        versions: Versions::default(),
        failures,
        has_patched: false,
    };
    for invocation in &invocations {
        dispatch.invoke(invocation, object).await?;
    }
    if dispatch.has_patched {
        dispatch.pass.passes.require_second();
    }
    let request = dispatch.pass.request.with_object(Some(&**object));
    dispatch.failures.conclude(&request)
}

/// A request that policies are changing.
struct Dispatch<'a> {
    pass: Pass<'a>,
    versions: Versions,
    failures: Failures,
    /// Whether some patch was applied, even if it changed nothing.
    has_patched: bool,
}

impl Dispatch<'_> {
    async fn invoke(
        &mut self,
        invocation: &Invocation<'_, Mutations>,
        object: &mut Box<dyn Object>,
    ) -> Result<(), ApiError> {
        let Invocation {
            policy, binding, ..
        } = *invocation;
        let mutations = match &policy.expressions {
            Ok(mutations) => mutations,
            Err(error) => {
                self.failures.failed(policy, binding, error);
                return Ok(());
            }
        };
        let values = self.values(invocation, &**object).await?;
        match self.holds(mutations, invocation, &values).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                self.failures.failed(policy, binding, &error);
                return Ok(());
            }
        }
        let id = id(invocation);
        if !self.pass.passes.calls(&id) {
            return Ok(());
        }
        let mut has_changed = false;
        for index in 0..mutations.patches.len() {
            match self.apply(mutations, index, invocation, object).await {
                Ok(changed) => has_changed |= changed,
                Err(Failure::Policy(error)) => self.failures.failed(policy, binding, &error),
                Err(Failure::Request(error)) => return Err(error),
            }
        }
        let is_reinvocable = mutations.is_reinvocable;
        self.pass.passes.record(&id, is_reinvocable, has_changed);
        Ok(())
    }

    /// Returns the values of the request, with the object as it is now.
    async fn values(
        &mut self,
        invocation: &Invocation<'_, Mutations>,
        object: &dyn Object,
    ) -> Result<Arc<Values>, ApiError> {
        let (admission, kind) = (self.pass.admission, invocation.kind);
        let request = self.pass.request.with_object(Some(object));
        let values = self.versions.of(admission, &request, kind).await;
        values.map_err(|error| internal(&error.message))
    }

    /// Returns whether the match conditions of a policy hold.
    async fn holds(
        &self,
        mutations: &Mutations,
        invocation: &Invocation<'_, Mutations>,
        values: &Values,
    ) -> Result<bool, String> {
        if mutations.conditions.is_empty() {
            return Ok(true);
        }
        let inputs = self.inputs(invocation, values);
        let all_hold = || all_hold(&mutations.conditions, &mutations.variables, &inputs);
        offload(usize::MAX, all_hold).await
    }

    /// Applies a patch to the object, and sets its defaults again. Returns whether it has changed.
    async fn apply(
        &mut self,
        mutations: &Mutations,
        index: usize,
        invocation: &Invocation<'_, Mutations>,
        object: &mut Box<dyn Object>,
    ) -> Result<bool, Failure> {
        let values = self.values(invocation, &**object).await;
        let values = values.map_err(Failure::Request)?;
        let kind = self.pass.request.with_object(Some(&**object));
        let kind = kind.kind_as(values.kind);
        let inputs = self.inputs(invocation, &values);
        // The work does not depend on the size of the objects alone: expressions may loop.
        let patched = offload(usize::MAX, || match mutations.patches.get(index) {
            Some(patch) => patched(patch, mutations, &inputs, kind),
            None => Ok(None),
        });
        let patched = patched.await?;
        self.has_patched = true;
        let Some(patched) = patched else {
            return Ok(false);
        };
        let replaced =
            replacement::replace(self.pass.admission, object, patched, &values.object).await;
        let changed = replaced.map_err(Failure::Policy)?;
        if changed {
            self.versions = Versions::default();
        }
        Ok(changed)
    }

    fn inputs<'i>(
        &'i self,
        invocation: &'i Invocation<'_, Mutations>,
        values: &'i Values,
    ) -> Inputs<'i> {
        Inputs {
            values,
            namespace: &self.pass.data.namespace_object,
            params: &invocation.params,
            authorizer: &self.pass.data.authorizer,
            resource: &self.pass.data.resource,
        }
    }
}

/// Returns the name of an evaluation among those of a request.
fn id(invocation: &Invocation<'_, Mutations>) -> String {
    let (policy, binding) = (&invocation.policy.name, &invocation.binding.name);
    let text = |name: &str| {
        let value = invocation.params.pointer(name);
        value.and_then(|value| value.as_str()).unwrap_or_default()
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{policy}/{binding}/{namespace}/{name}")
}
