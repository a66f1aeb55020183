//! Writes to the gateway.

use setpoint_controller::Receipt;
use setpoint_controller::client::Preconditions;
use setpoint_model::Key;
use setpoint_proto::core::{Pod, PodStatus};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};
use setpoint_runtime::Runtime;

use super::Executor;
use crate::pod::status::status;
use crate::pod::world::{AssignedPod, World};

impl<R: Runtime> Executor<R> {
    /// Writes the status of a Pod if it differs from the last reported one.
    pub(super) async fn report(
        &self,
        world: &World,
        pod: &AssignedPod,
    ) -> Result<Receipt, ApiError> {
        match status(world) {
            Some(status) => self.update_status(pod, status).await,
            None => Ok(Receipt::none()),
        }
    }

    /// Writes the Pod's status.
    ///
    /// # Errors
    /// If the gateway refuses the write. A Pod that no longer exists is not an error.
    pub async fn update_status(
        &self,
        pod: &AssignedPod,
        status: PodStatus,
    ) -> Result<Receipt, ApiError> {
        self.events.status_updated(&pod.object, &status);
        self.events.resized(pod, &status);
        let update = status_update(&pod.object, status);
        let written = self.client_of(&pod.object).update_status(&update).await;
        Receipt::unless_gone(written.map(|written| written.receipt()))
    }

    /// Deletes the object of a Pod that has ended.
    pub(super) async fn delete(&self, pod: &Pod) -> Result<Receipt, ApiError> {
        let uid = Preconditions::uid(&pod.metadata.uid);
        let deleted = self
            .client_of(pod)
            .delete::<Pod>(&Key::of(&pod.metadata), uid, Some(0))
            .await;
        match deleted {
            // The precondition on the uid failed: this Pod is gone and another has its name.
            Err(error) if error.reason == Reason::Conflict => Ok(Receipt::none()),
            deleted => Receipt::unless_gone(deleted.map(|written| written.receipt())),
        }
    }
}

/// Returns the minimal object for a status update: identity, resource version and status.
fn status_update(pod: &Pod, status: PodStatus) -> Pod {
    let meta = &pod.metadata;
    let metadata = ObjectMeta {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectMeta::default()
    };
    Pod {
        metadata,
        status,
        ..Pod::default()
    }
}
