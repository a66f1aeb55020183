//! Decides whether a webhook is called for a request.

use std::sync::Arc;

use serde_json::Value;
use setpoint_cel::Variables;
use setpoint_codec::kind_of;
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;

use super::configuration::Webhook;
use super::failure::internal;
use crate::admission::Admission;
use crate::admission::Attributes;
use crate::admission::conditions::{Inputs, all_hold};
use crate::admission::request::{Values, Versions};
use crate::admission::request_data::RequestData;
use crate::errors;
use crate::offload::offload;

/// Returns what a webhook is to be called with; `None` if it does not match the request.
///
/// # Errors
/// `NotFound` if the namespace, whose labels count, does not exist; `Forbidden` if match conditions fail and failures
/// are not ignored; `InternalError` if the objects cannot be converted.
pub(super) async fn matched(
    admission: &Admission,
    webhook: &Webhook,
    request: &Attributes<'_>,
    data: &RequestData,
    versions: &mut Versions,
) -> Result<Option<Arc<Values>>, ApiError> {
    let constraints = webhook.constraints.as_ref();
    let constraints = constraints.map_err(|error| internal(error))?;
    let selected = constraints.select(request, data);
    let selected =
        selected.map_err(|_| errors::not_found(kind_of::<Namespace>(), request.namespace()))?;
    let Some(kind) = selected else {
        return Ok(None);
    };
    let values = versions.of(admission, request, kind).await;
    let values = values.map_err(|error| internal(&error.message))?;
    match holds(webhook, &values, data).await {
        Ok(true) => Ok(Some(values)),
        Ok(false) => Ok(None),
        Err(_) if webhook.ignores_failures => Ok(None),
        Err(error) => Err(errors::forbidden(request.target, &error, None)),
    }
}

/// Returns whether the match conditions of a webhook hold.
async fn holds(webhook: &Webhook, values: &Values, data: &RequestData) -> Result<bool, String> {
    let conditions = webhook.conditions.as_ref().map_err(Clone::clone)?;
    if conditions.is_empty() {
        return Ok(true);
    }
    let inputs = Inputs {
        values,
        namespace: &Value::Null,
        params: &Value::Null,
        authorizer: &data.authorizer,
        resource: &data.resource,
    };
    // The work does not depend on the size of the objects alone: expressions may loop.
    offload(usize::MAX, || {
        all_hold(conditions, &Variables::default(), &inputs)
    })
    .await
}
