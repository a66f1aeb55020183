//! One call of a webhook.

use serde_json::Value;

use super::configuration::Webhook;
use super::failure::{Failure, denied, no_dry_run};
use super::review::{Response, Review};
use crate::admission::Admission;
use crate::admission::request::Values;
use crate::offload::offload;
use crate::request::audit;
use crate::webhook::Error;

/// The size in bytes by which a request is encoded inline or offloaded: that of a small object in JSON.
const SIZE: usize = 2 << 10;

/// Asks a webhook about a request. Returns the patch in its response. Adds its warnings to those of the request.
///
/// # Errors
/// If it cannot be asked, or denies the request.
pub(super) async fn call(
    admission: &Admission,
    webhook: &Webhook,
    values: &Values,
    is_dry_run: bool,
    mutates: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, Failure> {
    if is_dry_run && !webhook.supports_dry_run {
        return Err(Failure::Denial(no_dry_run(&webhook.name)));
    }
    let review = Review::new(&webhook.versions).ok_or_else(|| {
        let known = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        Failure::Call(format!("could not create admission objects: {known}"))
    })?;
    let response = ask(admission, webhook, values, &review, mutates).await?;
    warnings.extend(response.warnings.iter().cloned());
    for (key, value) in &response.audit_annotations {
        audit::annotate(format!("{}/{key}", webhook.name), || value.clone());
    }
    if !response.allowed {
        return Err(Failure::Denial(denied(&webhook.name, response.status)));
    }
    match mutates {
        true => review.patch(&response).map_err(Failure::Response),
        false => Ok(None),
    }
}

async fn ask(
    admission: &Admission,
    webhook: &Webhook,
    values: &Values,
    review: &Review,
    mutates: bool,
) -> Result<Response, Failure> {
    let client = admission.webhooks().get(&webhook.id, &webhook.config);
    let client =
        client.map_err(|error| Failure::Call(format!("could not get REST client: {error}")))?;
    let request = offload(SIZE, || review.request(values)).await;
    let response = client.post(request.into(), webhook.timeout).await;
    let response = response.map_err(|error| {
        let reason = format!("failed to call webhook: {error}");
        match error {
            Error::Refused(_) => Failure::Response(reason),
            _ => Failure::Call(reason),
        }
    })?;
    let read = offload(response.len(), || review.response(&response, mutates)).await;
    read.map_err(Failure::Response)
}
