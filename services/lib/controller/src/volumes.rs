//! The write that reserves a volume for a claim.

use serde_json::json;
use setpoint_model::Meta;
use setpoint_model::volume::{BOUND_BY_CONTROLLER, Volume};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim};
use setpoint_proto::{ApiError, Reason};

use crate::events::reference;
use crate::{Client, Receipt};

impl Client {
    /// Reserves the version of a volume that was observed for a claim. A volume that is reserved for a claim that is
    /// gone would be released, and perhaps deleted with its data, so the claim is read first.
    ///
    /// # Errors
    /// `Conflict` if the volume has changed or another claim has the name, `NotFound` if none has.
    pub async fn reserve_volume(&self, volume: &Volume, claim: &Meta) -> Result<Receipt, ApiError> {
        let newest = self.get::<PersistentVolumeClaim>(&claim.key).await?;
        if newest.metadata.uid != claim.uid {
            let message = format!("claim {} with uid {} is gone", claim.key, claim.uid);
            return Err(ApiError::new(Reason::Conflict, message));
        }
        let (seen, reserved) = (&volume.meta, reference::<PersistentVolumeClaim>(claim));
        let mut patch = json!({
            "metadata": {"uid": seen.uid, "resourceVersion": seen.revision.to_string()},
            "spec": {"claimRef": {
                "kind": reserved.kind,
                "apiVersion": reserved.api_version,
                "namespace": reserved.namespace,
                "name": reserved.name,
                "uid": reserved.uid,
                "resourceVersion": reserved.resource_version,
            }},
        });
        if volume.claim.is_none() {
            patch["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: "yes"});
        }
        let written = self.patch::<PersistentVolume>(&seen.key, "", patch);
        Ok(written.await?.receipt())
    }
}
