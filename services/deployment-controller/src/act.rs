//! Act: executes actions and records Events about them.

use serde_json::json;
use setpoint_controller::{Client, Created, Receipt, Recorder, Written, events, reference};
use setpoint_model::{Meta, Target, Template, template};
use setpoint_proto::ApiError;
use setpoint_proto::apps::{self, ReplicaSet};
use setpoint_proto::meta::ObjectMeta;

use crate::annotations::{self, Annotations};
use crate::progress::is_create_failure;
use crate::{Action, DeploymentView};

pub(crate) async fn act(
    client: &Client,
    deployment: &DeploymentView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let meta = &deployment.meta;
    match action {
        Action::Adopt(set) => {
            client
                .adopt::<apps::Deployment, ReplicaSet>(meta, set)
                .await
        }
        Action::Release(set) => client.release::<ReplicaSet>(meta, set).await,
        Action::Create {
            name,
            hash,
            replicas,
            annotations,
        } => {
            let set = new_set(deployment, name, hash, *replicas, annotations);
            create(client, deployment, &set).await
        }
        Action::Scale {
            set,
            to,
            annotations,
            ..
        } => patch(client, set, annotations, json!({"replicas": to})).await,
        Action::Refresh {
            set,
            annotations,
            min_ready_seconds,
        } => {
            let spec = json!({"minReadySeconds": min_ready_seconds});
            patch(client, set, annotations, spec).await
        }
        // With a resourceVersion, so that a ReplicaSet which has got Pods since is not deleted.
        Action::Delete(set) => client.delete_unchanged::<ReplicaSet>(set).await,
    }
}

/// Records an Event with the reason and message of upstream. Errors that the next reconcile resolves are not recorded.
pub(crate) fn record(
    events: &Recorder,
    deployment: &DeploymentView,
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
    deployment: &DeploymentView,
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
    let mut selector = deployment.labels.clone();
    selector.match_labels.extend([label()]);
    set.spec.selector = Some(selector);
    set.spec.replicas = Some(replicas);
    set.spec.min_ready_seconds = deployment.min_ready_seconds;
    set
}

async fn create(
    client: &Client,
    deployment: &DeploymentView,
    set: &ReplicaSet,
) -> Result<Receipt, ApiError> {
    let same = |taken: &ReplicaSet| taken.spec.template == set.spec.template;
    match client.create_or_take(&deployment.meta, set, same).await? {
        Created::Now(created) => annotate_stored_template(client, deployment, &created).await,
        Created::Before(receipt) => Ok(receipt),
    }
}

/// Annotates a new ReplicaSet if the template that the gateway stored differs from the one that was sent.
async fn annotate_stored_template(
    client: &Client,
    deployment: &DeploymentView,
    created: &Written<ReplicaSet>,
) -> Result<Receipt, ApiError> {
    let set = created.object()?;
    let stored = Template::of(&set.spec.template);
    if stored == deployment.packed {
        return Ok(created.receipt());
    }
    let set = Target::of(&Meta::of(&set.metadata));
    let annotations = annotations::stored(&deployment.packed, &stored);
    patch(client, &set, &annotations, json!({})).await
}

/// Sends a merge patch without a resourceVersion: status updates would conflict with it, and no one else scales the
/// set.
async fn patch(
    client: &Client,
    set: &Target,
    annotations: &Annotations,
    spec: serde_json::Value,
) -> Result<Receipt, ApiError> {
    let patch = json!({
        "metadata": {"uid": set.uid, "annotations": annotations},
        "spec": spec,
    });
    Ok(client
        .patch::<ReplicaSet>(&set.key, "", patch)
        .await?
        .receipt())
}
