//! Act: executes a decision.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Client, Receipt, Recorder};
use setpoint_proto::core::{ObjectReference, Pod};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource as _};

use crate::plan::Action;
use crate::pod::PodView;
use crate::status;

/// Executes an action.
///
/// # Errors
/// The error of the gateway. `Conflict` and `NotFound` mean that the Pod has changed since it was observed.
pub async fn act(
    gateway: &Client,
    events: &Recorder,
    action: &Action,
    now: Timestamp,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Bind { pod, node, .. } => {
            let written = gateway.bind(&pod.meta.key, node, &pod.meta.uid).await?;
            let message = format!("Successfully assigned {} to {node}", pod.meta.key);
            events.normal(&reference(pod), "Scheduled", message);
            Ok(written.receipt())
        }
        Action::MarkUnschedulable { pod, message, .. } => {
            events.warning(&reference(pod), "FailedScheduling", message.clone());
            report(gateway, pod, message, now).await
        }
    }
}

/// Writes the condition, unless the Pod has it already.
async fn report(
    gateway: &Client,
    pod: &Arc<PodView>,
    message: &str,
    now: Timestamp,
) -> Result<Receipt, ApiError> {
    let wants = pod.wants.as_ref();
    let Some(status) = wants.and_then(|wants| status::unschedulable(&wants.status, message, now))
    else {
        return Ok(Receipt::none());
    };
    let skeleton = Pod {
        metadata: ObjectMeta {
            namespace: pod.meta.key.namespace.clone(),
            name: pod.meta.key.name.clone(),
            uid: pod.meta.uid.clone(),
            resource_version: pod.meta.revision.to_string(),
            ..Default::default()
        },
        status,
        ..Default::default()
    };
    let written = gateway.update_status(&skeleton).await?;
    Ok(written.receipt())
}

fn reference(pod: &PodView) -> ObjectReference {
    ObjectReference {
        kind: Pod::KIND.to_owned(),
        api_version: Pod::API_VERSION.to_owned(),
        namespace: pod.meta.key.namespace.clone(),
        name: pod.meta.key.name.clone(),
        uid: pod.meta.uid.clone(),
        resource_version: pod.meta.revision.to_string(),
        ..Default::default()
    }
}
