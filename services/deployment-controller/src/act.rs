//! Act: one write for each kind of action, and the Event about it.

use serde_json::json;
use setpoint_controller::{Client, Created, Receipt, Recorder, Written, events, reference};
use setpoint_model::{Meta, Target, Template, template};
use setpoint_proto::ApiError;
use setpoint_proto::apps::{self, ReplicaSet};
use setpoint_proto::meta::{LabelSelector, ObjectMeta};

use crate::annotations::{self, Annotations};
use crate::progress::is_create_failure;
use crate::{Action, Deployment};

pub(crate) async fn act(
    gateway: &Client,
    deployment: &Deployment,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let meta = &deployment.meta;
    match action {
        Action::Adopt(set) => {
            gateway
                .adopt::<apps::Deployment, ReplicaSet>(meta, set)
                .await
        }
        Action::Release(set) => gateway.release::<ReplicaSet>(meta, set).await,
        Action::Create {
            name,
            hash,
            replicas,
            annotations,
        } => {
            let set = new_set(deployment, name, hash, *replicas, annotations);
            create(gateway, deployment, &set).await
        }
        Action::Scale {
            set,
            to,
            annotations,
            ..
        } => patch(gateway, set, annotations, json!({"replicas": to})).await,
        Action::Refresh {
            set,
            annotations,
            min_ready_seconds,
        } => {
            let spec = json!({"minReadySeconds": min_ready_seconds});
            patch(gateway, set, annotations, spec).await
        }
        // Only the version that had no Pods.
        Action::Delete(set) => gateway.delete_unchanged::<ReplicaSet>(set).await,
    }
}

/// Records an Event in upstream's words; none for errors that the next reconcile settles.
pub(crate) fn record(
    events: &Recorder,
    deployment: &Deployment,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let about = events::reference::<apps::Deployment>(&deployment.meta);
    match (action, result) {
        (Action::Create { name, replicas, .. }, Ok(_)) if *replicas > 0 => {
            let message = format!("Scaled up replica set {name} from 0 to {replicas}");
            events.normal(&about, "ScalingReplicaSet", message);
        }
        (Action::Scale { set, from, to, .. }, Ok(_)) if from != to => {
            let direction = if to > from { "up" } else { "down" };
            let name = &set.key.name;
            let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
            events.normal(&about, "ScalingReplicaSet", message);
        }
        (Action::Create { name, .. }, Err(error)) if is_create_failure(error) => {
            let message = format!("Failed to create new replica set {name:?}: {error}");
            events.warning(&about, "ReplicaSetCreateError", message);
        }
        _ => {}
    }
}

fn new_set(
    deployment: &Deployment,
    name: &str,
    hash: &str,
    replicas: i32,
    annotations: &Annotations,
) -> ReplicaSet {
    let label = || (template::LABEL.to_owned(), hash.to_owned());
    let mut set = ReplicaSet::default();
    set.spec.template = deployment.template.clone();
    set.spec.template.metadata.labels.extend([label()]);
    set.metadata = ObjectMeta {
        name: name.to_owned(),
        namespace: deployment.meta.key.namespace.clone(),
        labels: set.spec.template.metadata.labels.clone(),
        annotations: annotations.clone(),
        owner_references: vec![reference::<apps::Deployment>(&deployment.meta)],
        ..Default::default()
    };
    let mut selector = LabelSelector {
        ..deployment.labels.clone()
    };
    selector.match_labels.extend([label()]);
    set.spec.selector = Some(selector);
    set.spec.replicas = Some(replicas);
    set.spec.min_ready_seconds = deployment.min_ready_seconds;
    set
}

async fn create(
    gateway: &Client,
    deployment: &Deployment,
    set: &ReplicaSet,
) -> Result<Receipt, ApiError> {
    let same = |taken: &ReplicaSet| taken.spec.template == set.spec.template;
    match gateway.create_or_take(&deployment.meta, set, same).await? {
        Created::Now(created) => note_stored(gateway, deployment, &created).await,
        Created::Before(receipt) => Ok(receipt),
    }
}

/// Annotates a new set whose template the gateway stored otherwise than it was sent.
async fn note_stored(
    gateway: &Client,
    deployment: &Deployment,
    created: &Written<ReplicaSet>,
) -> Result<Receipt, ApiError> {
    let stored = Template::of(&created.object.spec.template);
    if stored == deployment.packed {
        return Ok(created.receipt());
    }
    let set = Target::of(&Meta::of(&created.object.metadata));
    let annotations = annotations::stored(&deployment.packed, &stored);
    patch(gateway, &set, &annotations, json!({})).await
}

/// No revision is asked for: the set's own controller reports into it all the time, and nobody else scales it.
async fn patch(
    gateway: &Client,
    set: &Target,
    annotations: &Annotations,
    spec: serde_json::Value,
) -> Result<Receipt, ApiError> {
    let patch = json!({
        "metadata": {"uid": set.uid, "annotations": annotations},
        "spec": spec,
    });
    Ok(gateway
        .patch::<ReplicaSet>(&set.key, "", patch)
        .await?
        .receipt())
}
