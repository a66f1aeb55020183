//! The conversion of objects between the versions of a custom resource: by name only, or by a webhook.

mod review;
mod stored;

use std::sync::Arc;
use std::time::{Duration, Instant};

use setpoint_codec::custom::Resource;
use setpoint_codec::{CustomObject, Kind, Object as _};
use setpoint_proto::apiextensions::WebhookConversion;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::Cache;

use crate::heavy::heavy;
use crate::metrics;
use crate::peers::Peers;
use crate::webhook::{Clients, Config};

use review::{Failure, Refusal, Review};
pub(crate) use stored::{downcast, only};

/// The timeout of a call (upstream: that of the client of webhooks).
const TIMEOUT: Duration = Duration::from_secs(30);
/// The size of an average object in JSON, in bytes, by which long lists are told from short ones.
pub(crate) const OBJECT_SIZE: usize = 2 << 10;

/// Converts objects of custom kinds.
pub(crate) struct Converter {
    clients: Clients,
    timeout: Duration,
}

impl Converter {
    /// Returns a converter that finds Services in a cache, and that calls no address that `peers` excludes.
    pub(crate) fn new(cache: Cache, peers: Peers) -> Self {
        Self {
            clients: Clients::new(cache, peers),
            timeout: TIMEOUT,
        }
    }

    /// Sets the timeout of a call.
    #[must_use]
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the objects in the version `to`, in the same order. A webhook is called at most once, with all objects
    /// of other versions.
    ///
    /// # Errors
    /// `InternalError` if the webhook fails, or returns what it may not.
    pub(crate) async fn convert(
        &self,
        objects: Vec<CustomObject>,
        to: &'static Kind,
    ) -> Result<Vec<CustomObject>, ApiError> {
        let resource = to.custom_resource();
        let Some((resource, webhook)) =
            (resource.as_ref()).and_then(|resource| Some((resource, resource.webhook()?)))
        else {
            let renamed = objects.into_iter().map(|object| object.with_kind(to));
            return Ok(renamed.collect());
        };
        let mut results: Vec<Option<CustomObject>> = Vec::with_capacity(objects.len());
        let mut others = Vec::new();
        for object in objects {
            match object.kind() == to {
                true => results.push(Some(object)),
                false => {
                    results.push(None);
                    others.push(object);
                }
            }
        }
        if others.is_empty() {
            return Ok(results.into_iter().flatten().collect());
        }
        let converted = self.call(resource, webhook, &others, to).await?;
        let mut converted = converted.into_iter();
        let merged = results
            .into_iter()
            .map(|own| own.or_else(|| converted.next()));
        Ok(merged.flatten().collect())
    }

    /// Converts objects, none of which is of the version `to`, by the webhook.
    async fn call(
        &self,
        resource: &Arc<Resource>,
        webhook: &WebhookConversion,
        objects: &[CustomObject],
        to: &'static Kind,
    ) -> Result<Vec<CustomObject>, ApiError> {
        let from = objects[0].kind();
        let began = Instant::now();
        let outcome = self.review(&resource.name, webhook, objects, to).await;
        let failure = outcome.as_ref().err().map(|refusal| refusal.failure.name());
        metrics::converted(began.elapsed(), failure);
        let versions = [from.version.as_str(), to.version.as_str()];
        metrics::converted_versions(&resource.name, versions, began.elapsed(), failure.is_none());
        outcome.map_err(|refusal| {
            let (group, version, kind) = (&from.group, &from.version, &from.kind);
            let message = format!(
                "conversion webhook for {group}/{version}, Kind={kind} {}",
                refusal.message
            );
            ApiError::new(Reason::InternalError, message)
        })
    }

    async fn review(
        &self,
        name: &str,
        webhook: &WebhookConversion,
        objects: &[CustomObject],
        to: &'static Kind,
    ) -> Result<Vec<CustomObject>, Refusal> {
        let failed = |why: String| Refusal {
            message: format!("failed: {why}"),
            failure: Failure::Call,
        };
        let versions = &webhook.conversion_review_versions;
        let review = Review::new(versions, objects, to)
            .ok_or_else(|| failed("no supported conversion review versions".into()))?;
        let config = webhook.client_config.as_ref().map(Config::from);
        let config = config.ok_or_else(|| failed("it has no client config".into()))?;
        let client = self.clients.get(name, &config);
        let client = client.map_err(|error| failed(error.to_string()))?;
        let request = heavy(objects.len() * OBJECT_SIZE, || review.request()).await;
        let response = client.post(request.into(), self.timeout).await;
        let response = response.map_err(|error| failed(error.to_string()))?;
        heavy(response.len(), || review.converted(&response)).await
    }
}
