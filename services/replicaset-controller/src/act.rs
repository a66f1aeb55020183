//! Act: one write for each kind of action. Nothing is decided here.

use setpoint_machinery::{Gateway, Receipt, events};
use setpoint_model::{Key, Revision, owner};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};
use setpoint_proto::core;
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::status::is_failure;
use crate::{Action, ReplicaSets, Set, World};

impl ReplicaSets {
    pub(crate) async fn carry_out(
        &self,
        gateway: &Gateway,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let set = &world.set;
        match action {
            Action::Adopt(pod) => {
                gateway.ensure_alive::<ReplicaSet>(&set.meta).await?;
                let adopt = |owners: &mut Vec<_>| owners.push(set.as_owner());
                gateway.change_owners::<core::Pod>(pod, adopt).await
            }
            Action::Release(pod) => {
                let ours = |owner: &OwnerReference| owner.uid == set.meta.uid;
                let release = |owners: &mut Vec<_>| owners.retain(|owner| !ours(owner));
                gateway.change_owners::<core::Pod>(pod, release).await
            }
            Action::Create { name } => {
                let created = create(gateway, set, name).await;
                created.inspect_err(|_| self.retry_names(world))
            }
            // Only the very version that was ranked: a Pod that was relabelled meanwhile is not ours to delete.
            Action::Delete(pod) => gateway.delete_seen::<core::Pod>(pod).await,
        }
    }

    /// Tells the user, in upstream's words. Who only has to look again has nothing to tell.
    pub(crate) fn tell(&self, world: &World, action: &Action, done: &Result<Receipt, ApiError>) {
        let subject = events::reference::<ReplicaSet>(&world.set.meta);
        match (action, done) {
            (Action::Create { name }, Ok(_)) => {
                self.events
                    .normal(&subject, "SuccessfulCreate", format!("Created pod: {name}"));
            }
            (Action::Delete(pod), Ok(_)) => {
                self.events.normal(
                    &subject,
                    "SuccessfulDelete",
                    format!("Deleted pod: {}", pod.key.name),
                );
            }
            (_, Err(error)) if !is_failure(error) => {}
            (Action::Create { .. }, Err(error)) => {
                self.events
                    .warning(&subject, "FailedCreate", format!("Error creating: {error}"));
            }
            (Action::Delete(_), Err(error)) => {
                self.events
                    .warning(&subject, "FailedDelete", format!("Error deleting: {error}"));
            }
            _ => {}
        }
    }

    pub(crate) async fn write_status(
        &self,
        gateway: &Gateway,
        world: &World,
        status: ReplicaSetStatus,
    ) -> Result<Receipt, ApiError> {
        let set = ReplicaSet {
            metadata: ObjectMeta {
                namespace: world.set.meta.key.namespace.clone(),
                name: world.set.meta.key.name.clone(),
                uid: world.set.meta.uid.clone(),
                resource_version: world.set.meta.revision.to_string(),
                ..Default::default()
            },
            status,
            ..Default::default()
        };
        Ok(gateway.update_status(&set).await?.receipt())
    }
}

/// A name that is taken was taken by an earlier attempt, if the Pod is ours.
async fn create(gateway: &Gateway, set: &Set, name: &str) -> Result<Receipt, ApiError> {
    match gateway.create(&new_pod(set, name)).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            let key = Key::new(&set.meta.key.namespace, name);
            let taken = gateway.get::<core::Pod>(&key).await?;
            let ours = owner::controller_of(&taken.metadata)
                .is_some_and(|owner| owner.uid == set.meta.uid);
            if ours { Ok(seen(&taken)) } else { Err(error) }
        }
        created => Ok(created?.receipt()),
    }
}

fn seen(pod: &core::Pod) -> Receipt {
    Receipt {
        resource: core::Pod::RESOURCE,
        revision: Revision::of(&pod.metadata),
    }
}

fn new_pod(set: &Set, name: &str) -> core::Pod {
    let template = &set.template;
    core::Pod {
        metadata: ObjectMeta {
            name: name.to_owned(),
            generate_name: set.prefix(),
            namespace: set.meta.key.namespace.clone(),
            labels: template.metadata.labels.clone(),
            annotations: template.metadata.annotations.clone(),
            finalizers: template.metadata.finalizers.clone(),
            owner_references: vec![set.as_owner()],
            ..Default::default()
        },
        spec: template.spec.clone(),
        ..Default::default()
    }
}
