//! Act: one write for each kind of action. Nothing is decided here.

use serde_json::json;
use setpoint_machinery::{Gateway, Receipt, Written, events};
use setpoint_model::{Key, Meta, Revision, Target, Template, owner, template};
use setpoint_proto::apps::{self, ReplicaSet};
use setpoint_proto::meta::{LabelSelector, ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::annotations::{self, Annotations, REVISION};
use crate::progress::is_create_failure;
use crate::{Action, Deployment, Deployments, Report, World};

impl Deployments {
    pub(crate) async fn carry_out(
        &self,
        gateway: &Gateway,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let deployment = &world.deployment;
        match action {
            Action::Adopt(set) => {
                gateway
                    .ensure_alive::<apps::Deployment>(&deployment.meta)
                    .await?;
                let adopt = |owners: &mut Vec<_>| owners.push(deployment.as_owner());
                gateway.change_owners::<ReplicaSet>(set, adopt).await
            }
            Action::Release(set) => {
                let ours = |owner: &OwnerReference| owner.uid == deployment.meta.uid;
                let release = |owners: &mut Vec<_>| owners.retain(|owner| !ours(owner));
                gateway.change_owners::<ReplicaSet>(set, release).await
            }
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
            } => {
                let spec = json!({"replicas": to});
                patch(gateway, set, annotations, spec).await
            }
            Action::Refresh {
                set,
                annotations,
                min_ready_seconds,
            } => {
                let spec = json!({"minReadySeconds": min_ready_seconds});
                patch(gateway, set, annotations, spec).await
            }
            // Only the very version that had no Pods.
            Action::Delete(set) => gateway.delete_seen::<ReplicaSet>(set).await,
        }
    }

    /// Tells the user, in upstream's words. Who only has to look again has nothing to tell.
    pub(crate) fn tell(&self, world: &World, action: &Action, done: &Result<Receipt, ApiError>) {
        let subject = events::reference::<apps::Deployment>(&world.deployment.meta);
        match (action, done) {
            (Action::Create { name, replicas, .. }, Ok(_)) if *replicas > 0 => {
                let message = format!("Scaled up replica set {name} from 0 to {replicas}");
                self.events.normal(&subject, "ScalingReplicaSet", message);
            }
            (Action::Scale { set, from, to, .. }, Ok(_)) if from != to => {
                let way = if to > from { "up" } else { "down" };
                let message = format!(
                    "Scaled {way} replica set {} from {from} to {to}",
                    set.key.name
                );
                self.events.normal(&subject, "ScalingReplicaSet", message);
            }
            (Action::Create { name, .. }, Err(error)) if is_create_failure(error) => {
                let message = format!("Failed to create new replica set {name:?}: {error}");
                self.events
                    .warning(&subject, "ReplicaSetCreateError", message);
            }
            _ => {}
        }
    }

    /// One write for status and revision: annotations may change with a status, and count no generation there.
    pub(crate) async fn write_status(
        &self,
        gateway: &Gateway,
        world: &World,
        report: Report,
    ) -> Result<Receipt, ApiError> {
        let meta = &world.deployment.meta;
        let mut annotations = meta.annotations.clone();
        annotations.extend(
            report
                .revision
                .map(|revision| (REVISION.to_owned(), revision.to_string())),
        );
        let deployment = apps::Deployment {
            metadata: ObjectMeta {
                namespace: meta.key.namespace.clone(),
                name: meta.key.name.clone(),
                uid: meta.uid.clone(),
                resource_version: meta.revision.to_string(),
                annotations,
                ..Default::default()
            },
            status: report.status,
            ..Default::default()
        };
        Ok(gateway.update_status(&deployment).await?.receipt())
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
        owner_references: vec![deployment.as_owner()],
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

/// A name that is taken was taken by an earlier attempt, if the set is ours and has this template.
async fn create(
    gateway: &Gateway,
    deployment: &Deployment,
    set: &ReplicaSet,
) -> Result<Receipt, ApiError> {
    match gateway.create(set).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            let taken = gateway.get::<ReplicaSet>(&Key::of(&set.metadata)).await?;
            let ours = owner::controller_of(&taken.metadata)
                .is_some_and(|owner| owner.uid == deployment.meta.uid);
            if ours && taken.spec.template == set.spec.template {
                return Ok(Receipt {
                    resource: ReplicaSet::RESOURCE,
                    revision: Revision::of(&taken.metadata),
                });
            }
            Err(error)
        }
        created => note_stored(gateway, deployment, &created?).await,
    }
}

/// Annotates a new set whose template the gateway stored otherwise than it was sent.
async fn note_stored(
    gateway: &Gateway,
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
    gateway: &Gateway,
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
