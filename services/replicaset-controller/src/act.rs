//! Act: executes actions and records Events about them.

use setpoint_controller::{Client, Receipt, Recorder, events, reference};
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, core};

use crate::status::is_failure;
use crate::{Action, ReplicaSetView};

pub(crate) async fn act(
    client: &Client,
    set: &ReplicaSetView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Adopt(pod) => client.adopt::<ReplicaSet, core::Pod>(&set.meta, pod).await,
        Action::Release(pod) => client.release::<core::Pod>(&set.meta, pod).await,
        Action::Create { name } => {
            let pod = new_pod(set, name);
            let created = client.create_or_take(&set.meta, &pod, |_| true).await?;
            Ok(created.receipt())
        }
        // With a resourceVersion: a Pod that was relabelled since may no longer belong to the set.
        Action::Delete(pod) => client.delete_unchanged::<core::Pod>(pod).await,
    }
}

/// Records an Event with the reason and message of upstream. Errors that the next reconcile resolves are not recorded.
pub(crate) fn record(
    events: &Recorder,
    set: &ReplicaSetView,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let about = events::reference::<ReplicaSet>(&set.meta);
    match (action, result) {
        (Action::Create { name }, Ok(_)) => {
            events.normal(&about, "SuccessfulCreate", format!("Created pod: {name}"));
        }
        (Action::Delete(pod), Ok(_)) => {
            let message = format!("Deleted pod: {}", pod.key.name);
            events.normal(&about, "SuccessfulDelete", message);
        }
        (_, Err(error)) if !is_failure(error) => {}
        (Action::Create { .. }, Err(error)) => {
            events.warning(&about, "FailedCreate", format!("Error creating: {error}"));
        }
        (Action::Delete(_), Err(error)) => {
            events.warning(&about, "FailedDelete", format!("Error deleting: {error}"));
        }
        _ => {}
    }
}

fn new_pod(set: &ReplicaSetView, name: &str) -> core::Pod {
    let template = &set.template;
    core::Pod {
        metadata: ObjectMeta {
            name: name.to_owned(),
            generate_name: set.prefix(),
            namespace: set.meta.key.namespace.clone(),
            labels: template.metadata.labels.clone(),
            annotations: template.metadata.annotations.clone(),
            finalizers: template.metadata.finalizers.clone(),
            owner_references: vec![reference::<ReplicaSet>(&set.meta)],
            ..Default::default()
        },
        spec: template.spec.clone(),
        ..Default::default()
    }
}
