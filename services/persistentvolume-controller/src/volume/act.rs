//! Act: executes actions.

use serde_json::{Value, json};
use setpoint_controller::{Client, Receipt};
use setpoint_model::volume::{BOUND_BY_CONTROLLER, LOCAL_PATH, NODE, VOLUME_PROTECTION};
use setpoint_model::{Key, Target};
use setpoint_proto::core::{Node, PersistentVolume, PersistentVolumeClaim};
use setpoint_proto::{ApiError, Reason};

use super::{Action, VolumeView};

pub(super) async fn act(
    client: &Client,
    view: &VolumeView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let volume = &view.volume;
    match action {
        Action::Protect => {
            let mut finalizers = volume.finalizers.clone();
            finalizers.push(VOLUME_PROTECTION.to_owned());
            patch(
                client,
                view,
                json!({"metadata": {"finalizers": finalizers}}),
            )
            .await
        }
        Action::Label { node } => {
            patch(client, view, json!({"metadata": {"labels": {NODE: node}}})).await
        }
        Action::Unprotect => remove_finalizer(client, view, VOLUME_PROTECTION).await,
        Action::Unbind => {
            let reference = match volume.is_bound_by_controller() {
                true => Value::Null,
                false => json!({"uid": null, "resourceVersion": null}),
            };
            let patched = json!({
                "metadata": {"annotations": {BOUND_BY_CONTROLLER: null}},
                "spec": {"claimRef": reference},
            });
            patch(client, view, patched).await
        }
        Action::Delete { claim } => {
            ensure_unclaimed(client, view, claim).await?;
            let seen = Target::of(&volume.meta);
            client.delete_unchanged::<PersistentVolume>(&seen).await
        }
        Action::Abandon { node } => {
            ensure_missing(client, node).await?;
            remove_finalizer(client, view, LOCAL_PATH).await
        }
    }
}

async fn remove_finalizer(
    client: &Client,
    view: &VolumeView,
    finalizer: &str,
) -> Result<Receipt, ApiError> {
    let mut finalizers = view.volume.finalizers.clone();
    finalizers.retain(|own| own != finalizer);
    patch(
        client,
        view,
        json!({"metadata": {"finalizers": finalizers}}),
    )
    .await
}

/// Patches the version that was observed. Succeeds if the volume is gone.
async fn patch(client: &Client, view: &VolumeView, mut patch: Value) -> Result<Receipt, ApiError> {
    let meta = &view.volume.meta;
    patch["metadata"]["uid"] = meta.uid.clone().into();
    patch["metadata"]["resourceVersion"] = meta.revision.to_string().into();
    let written = client.patch::<PersistentVolume>(&meta.key, "", patch);
    Receipt::unless_gone(written.await.map(|written| written.receipt()))
}

/// Reads whether the claim of a volume is gone, or bound to another volume: a cache may lag, and the data of a claim
/// must not be lost because of that.
pub(super) async fn ensure_unclaimed(
    client: &Client,
    view: &VolumeView,
    claim: &Key,
) -> Result<(), ApiError> {
    let volume = &view.volume;
    let uid = volume.claim.as_ref().map(|claim| &*claim.uid);
    match client.get::<PersistentVolumeClaim>(claim).await {
        Err(error) if error.reason == Reason::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if Some(&*found.metadata.uid) != uid => Ok(()),
        Ok(found) if ![volume.name(), ""].contains(&&*found.spec.volume_name) => Ok(()),
        Ok(_) => Err(ApiError::new(
            Reason::Conflict,
            format!("claim {claim} of volume {} exists", volume.name()),
        )),
    }
}

async fn ensure_missing(client: &Client, node: &str) -> Result<(), ApiError> {
    match client.get::<Node>(&Key::new("", node)).await {
        Err(error) if error.reason == Reason::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            let message = format!("node {node} exists");
            Err(ApiError::new(Reason::Conflict, message))
        }
    }
}
