//! Act: executes actions.

use serde_json::{Value, json};
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Receipt};
use setpoint_model::volume::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, CLAIM_PROTECTION, SELECTED_NODE,
};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim, Pod};
use setpoint_proto::{ApiError, Reason};
use setpoint_workload::PodView;

use super::plan::PROVISIONER;
use super::{Action, ClaimView};
use crate::volume::VolumeView;

/// The annotation with the provisioner in old versions of Kubernetes, which provisioners still read.
const OLD_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";

pub(super) async fn act(
    client: &Client,
    view: &ClaimView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Protect => {
            let mut finalizers = view.finalizers.clone();
            finalizers.push(CLAIM_PROTECTION.to_owned());
            patch(
                client,
                view,
                json!({"metadata": {"finalizers": finalizers}}),
            )
            .await
        }
        Action::Unprotect => {
            ensure_unused(client, view).await?;
            let mut finalizers = view.finalizers.clone();
            finalizers.retain(|own| own != CLAIM_PROTECTION);
            patch(
                client,
                view,
                json!({"metadata": {"finalizers": finalizers}}),
            )
            .await
        }
        Action::SetClass(class) => {
            patch(client, view, json!({"spec": {"storageClassName": class}})).await
        }
        Action::BindVolume(volume) => {
            client
                .reserve_volume(&volume.volume, &view.claim.meta)
                .await
        }
        Action::BindClaim(volume) => bind_claim(client, view, volume).await,
        Action::SetProvisioner(provisioner) => {
            let annotations = json!({PROVISIONER: provisioner, OLD_PROVISIONER: provisioner});
            patch(
                client,
                view,
                json!({"metadata": {"annotations": annotations}}),
            )
            .await
        }
        Action::Provision(volume) => create(client, view, volume).await,
        Action::ForgetNode(_) => {
            let annotations = json!({SELECTED_NODE: null});
            patch(
                client,
                view,
                json!({"metadata": {"annotations": annotations}}),
            )
            .await
        }
        Action::Report(_) => Ok(Receipt::none()),
    }
}

async fn bind_claim(
    client: &Client,
    view: &ClaimView,
    volume: &VolumeView,
) -> Result<Receipt, ApiError> {
    let mut annotations = json!({BIND_COMPLETED: "yes"});
    if view.claim.volume.is_empty() {
        annotations[BOUND_BY_CONTROLLER] = "yes".into();
    }
    let bound = json!({
        "metadata": {"annotations": annotations},
        "spec": {"volumeName": volume.volume.name()},
    });
    patch(client, view, bound).await
}

/// Creates the volume of a claim, or finds the one that an earlier attempt has created.
async fn create(
    client: &Client,
    view: &ClaimView,
    volume: &PersistentVolume,
) -> Result<Receipt, ApiError> {
    match client.create(volume).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            let key = setpoint_model::Key::of(&volume.metadata);
            let found = client.get::<PersistentVolume>(&key).await?;
            let reserved = found.spec.claim_ref.as_ref();
            match reserved.is_some_and(|claim| claim.uid == view.claim.meta.uid) {
                true => Ok(Receipt::of(&found)),
                false => Err(error),
            }
        }
        created => Ok(created?.receipt()),
    }
}

/// Patches the version that was observed. Succeeds if the claim is gone.
async fn patch(client: &Client, view: &ClaimView, mut patch: Value) -> Result<Receipt, ApiError> {
    let meta = &view.claim.meta;
    patch["metadata"]["uid"] = meta.uid.clone().into();
    patch["metadata"]["resourceVersion"] = meta.revision.to_string().into();
    let written = client.patch::<PersistentVolumeClaim>(&meta.key, "", patch);
    Receipt::unless_gone(written.await.map(|written| written.receipt()))
}

/// Reads whether a Pod with a node uses the claim: the cache may lag.
async fn ensure_unused(client: &Client, view: &ClaimView) -> Result<(), ApiError> {
    let key = &view.claim.meta.key;
    let options = ListOptions {
        namespace: key.namespace.clone(),
        ..ListOptions::default()
    };
    let pods = client.list::<Pod>(&options).await?;
    let uses = |pod: &&Pod| {
        let claims = PodView::claims_of(&pod.spec);
        !pod.spec.node_name.is_empty() && claims.iter().any(|(_, claim)| **claim == *key.name)
    };
    match pods.items.iter().find(uses) {
        None => Ok(()),
        Some(pod) => {
            let message = format!("pod {} uses claim {key}", pod.metadata.name);
            Err(ApiError::new(Reason::Conflict, message))
        }
    }
}
