//! Act: executes actions and records Events about them.

use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_proto::{ApiError, Resource, core};
use setpoint_workload::PodWrite;

use crate::{Action, ReplicaSetView};

/// Executes an action for an object of the kind `O`.
pub(crate) async fn act<O: Resource>(
    client: &Client,
    set: &ReplicaSetView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Adopt(pod) => client.adopt::<O, core::Pod>(&set.meta, pod).await,
        Action::Release(pod) => client.release::<core::Pod>(&set.meta, pod).await,
        Action::Create { name } => {
            let pod = new_pod::<O>(set, name);
            let created = client.create_or_take(&set.meta, &pod, |_| true).await?;
            Ok(created.receipt())
        }
        // With a resourceVersion: a Pod that was relabelled since may no longer belong to the set.
        Action::Delete(pod) => client.delete_unchanged::<core::Pod>(pod).await,
    }
}

/// Records an Event about a Pod that was created or deleted.
pub(crate) fn record<O: Resource>(
    events: &Recorder,
    set: &ReplicaSetView,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let write = match action {
        Action::Create { name } => PodWrite::Create(name),
        Action::Delete(pod) => PodWrite::Delete(&pod.key.name),
        Action::Adopt(_) | Action::Release(_) => return,
    };
    write.record(events, &events::reference::<O>(&set.meta), result);
}

fn new_pod<O: Resource>(set: &ReplicaSetView, name: &str) -> core::Pod {
    let mut pod = setpoint_workload::new_pod::<O>(&set.meta, &set.template, name);
    pod.metadata.generate_name = set.prefix();
    pod
}
