//! Asks the validating policies for a request.

use setpoint_kinds::expressions::Expressions;
use setpoint_proto::ApiError;

use super::evaluation;
use super::hook::Hook;
use super::invocation::{self, Invocation, Misconfigured};
use super::verdict::Verdict;
use crate::admission::Admission;
use crate::admission::Attributes;
use crate::admission::conditions::Inputs;
use crate::admission::request::Versions;
use crate::admission::request_data::RequestData;
use crate::offload::offload;

/// Evaluates the validating policies for a request that is about to be committed. Upstream's never see reviews.
///
/// # Errors
/// If a policy denies it: `Invalid`, or the reason that the policy names.
pub(in crate::admission) async fn validate(
    admission: &Admission,
    request: &Attributes<'_>,
    data: &RequestData,
    hooks: &[Hook<Expressions>],
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if request.target.served.is_review {
        return Ok(());
    }
    let mut dispatch = Dispatch {
        admission,
        request,
        data,
        versions: Versions::default(),
        verdict: Verdict::default(),
    };
    for found in invocation::find(admission, request, data, hooks).await {
        match found {
            Ok(invocation) => dispatch.ask(&invocation).await,
            Err(misconfigured) => dispatch.verdict.misconfigured(&misconfigured),
        }
    }
    dispatch.verdict.conclude(request, warnings)
}

/// A request that policies are judging.
struct Dispatch<'a> {
    admission: &'a Admission,
    request: &'a Attributes<'a>,
    data: &'a RequestData,
    versions: Versions,
    verdict: Verdict,
}

impl Dispatch<'_> {
    async fn ask(&mut self, invocation: &Invocation<'_, Expressions>) {
        let Invocation {
            policy, binding, ..
        } = *invocation;
        let values = self
            .versions
            .of(self.admission, self.request, invocation.kind);
        let values = match values.await {
            Ok(values) => values,
            Err(error) => {
                let error = format!("failed to convert object version: {}", error.message);
                return self.verdict.misconfigured(&Misconfigured {
                    policy,
                    binding: Some(binding),
                    error,
                });
            }
        };
        let inputs = Inputs {
            values: &values,
            namespace: &self.data.namespace_object,
            params: &invocation.params,
            authorizer: &self.data.authorizer,
            resource: &self.data.resource,
        };
        let evaluate = || evaluation::opinion(policy, &inputs);
        // The work does not depend on the size of the objects alone: expressions may loop.
        let opinion = offload(usize::MAX, evaluate).await;
        for objection in opinion.objections {
            self.verdict.object(policy, binding, objection);
        }
        for (key, value) in opinion.annotations {
            self.verdict.annotate(policy, &key, value);
        }
    }
}
