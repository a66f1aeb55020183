//! Mutating webhooks: they are called one after the other, and each sees what the others have changed.

use std::sync::Arc;

use serde_json::Value;
use setpoint_codec::{Kind, Object, patch};
use setpoint_proto::ApiError;

use super::Configuration;
use super::annotations::Place;
use super::call::call;
use super::failure::{Failure, internal, nothing_to_modify};
use super::matching::matched;
use crate::admission::Admission;
use crate::admission::reinvocation::Reinvocation;
use crate::admission::request::{Values, Versions};
use crate::admission::request_data::RequestData;
use crate::admission::{Attributes, replacement};
use crate::offload::offload;

/// A pass of the webhooks over a request.
pub(in crate::admission) struct Pass<'a> {
    pub admission: &'a Admission,
    /// The request; its object is that of the call of `mutate`.
    pub request: Attributes<'a>,
    pub data: &'a RequestData,
    pub passes: &'a mut Reinvocation,
    pub warnings: &'a mut Vec<String>,
}

/// Lets mutating webhooks change the object of a request, if it has one. Returns whether they have.
///
/// # Errors
/// If one of them denies the request.
pub(in crate::admission) async fn mutate(
    mut pass: Pass<'_>,
    configurations: &[Arc<Configuration>],
    mut object: Option<&mut Box<dyn Object>>,
) -> Result<bool, ApiError> {
    let (mut versions, mut any_change) = (Versions::default(), false);
    let webhooks = configurations.iter().flat_map(|one| &one.webhooks);
    for (index, webhook) in webhooks.enumerate() {
        let place = Place {
            webhook,
            round: pass.passes.round(),
            index,
        };
        let request = pass
            .request
            .with_object(object.as_deref().map(|one| &**one));
        let matched = matched(pass.admission, webhook, &request, pass.data, &mut versions);
        let Some(values) = matched.await?.filter(|_| pass.passes.calls(&webhook.id)) else {
            continue;
        };
        let dry_run = request.context.dry_run;
        let called = call(
            pass.admission,
            webhook,
            &values,
            dry_run,
            true,
            pass.warnings,
        )
        .await;
        let changed = match called {
            Ok(None) => Ok(false),
            Ok(Some(patch)) => {
                place.patched(&patch);
                pass.apply(&webhook.name, patch, &values, object.as_deref_mut())
                    .await
            }
            Err(failure) => Err(failure),
        };
        let (changed, failure) = match changed {
            Ok(changed) => (changed, None),
            Err(failure) => (false, Some(failure)),
        };
        if changed {
            (versions, any_change) = (Versions::default(), true);
        }
        pass.passes
            .record(&webhook.id, webhook.is_reinvocable, changed);
        place.mutated(changed);
        let failed = failure.is_some();
        let error = failure.and_then(|one| one.into_error(&webhook.name, webhook.ignores_failures));
        if failed && error.is_none() {
            place.ignored();
        }
        error.map_or(Ok(()), Err)?;
    }
    Ok(any_change)
}

impl Pass<'_> {
    /// Applies a patch to the object, and sets its defaults again. Returns whether it has changed.
    async fn apply(
        &mut self,
        webhook: &str,
        patch: Value,
        values: &Values,
        object: Option<&mut Box<dyn Object>>,
    ) -> Result<bool, Failure> {
        let object = object.ok_or_else(|| Failure::Denial(nothing_to_modify(webhook)))?;
        let kind = self
            .request
            .with_object(Some(&**object))
            .kind_as(values.kind);
        let broken = |error: String| Failure::Denial(internal(&error));
        let bytes = values.object.to_string().len();
        let patched = offload(bytes, || patched(kind, &values.object, patch)).await;
        let patched = patched.map_err(broken)?;
        let replaced = replacement::replace(self.admission, object, patched, &values.object).await;
        replaced.map_err(broken)
    }
}

fn patched(kind: &'static Kind, document: &Value, patch: Value) -> Result<Box<dyn Object>, String> {
    let patched = patch::json(kind, document.clone(), patch);
    let patched = patched.map_err(|error| error.to_string())?;
    let object = kind.from_json(patched.to_string().as_bytes());
    object.map_err(|error| error.to_string())
}
