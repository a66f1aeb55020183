//! Fetch: reads the scales of the controllers of Pods.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_controller::{Client, ObjectRef, Reader};
use setpoint_model::owner::controller_of;
use setpoint_model::{Key, Owner};
use setpoint_proto::apps::{Deployment, ReplicaSet, StatefulSet};
use setpoint_proto::core::{Pod, ReplicationController};
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_workload::{DefinitionView, PodView, resource_of};

/// The scales of the controllers of some Pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scales {
    /// The sum of the replicas that the controllers want.
    pub replicas: i32,
    /// Whether a Pod has no controller.
    pub unmanaged: bool,
}

/// The uid and the desired replicas of a controller.
type Scale = (String, i32);

/// Reads the scales of the controllers of Pods. Pods of ReplicaSets of one Deployment have one controller: that.
///
/// # Errors
/// If a controller cannot be read, is gone, or has no replicas, in upstream's words.
pub(crate) async fn scales(
    client: &Client,
    definitions: &Reader<DefinitionView>,
    pods: &[Arc<PodView>],
) -> Result<Scales, String> {
    let (mut seen, mut found, mut unmanaged) = (HashSet::new(), HashMap::new(), false);
    for pod in pods {
        let Some(owner) = &pod.meta.owner else {
            unmanaged = true;
            continue;
        };
        if seen.insert(owner.uid.as_str()) {
            let scale = scale(client, definitions, pod, owner).await;
            let scale = scale.map_err(|error| error.to_string())?;
            let none = || format!("found no controllers for pod {:?}", pod.meta.key.name);
            let (uid, replicas) = scale.ok_or_else(none)?;
            found.insert(uid, replicas);
        }
    }
    Ok(Scales {
        replicas: found.into_values().fold(0, i32::saturating_add),
        unmanaged,
    })
}

/// Returns the scale of the controller of a Pod; `None` if it is gone.
async fn scale(
    client: &Client,
    definitions: &Reader<DefinitionView>,
    pod: &PodView,
    owner: &Owner,
) -> Result<Option<Scale>, ApiError> {
    let key = Key::new(&pod.meta.key.namespace, &owner.name);
    match owner.kind.as_str() {
        ReplicaSet::KIND => of_replica_set(client, &key, owner).await,
        StatefulSet::KIND => {
            of_object(client, key.in_resource(StatefulSet::RESOURCE), &owner.uid).await
        }
        ReplicationController::KIND => {
            let controller = key.in_resource(ReplicationController::RESOURCE);
            of_object(client, controller, &owner.uid).await
        }
        _ => of_any(client, definitions, pod, key).await,
    }
}

async fn of_replica_set(
    client: &Client,
    key: &Key,
    owner: &Owner,
) -> Result<Option<Scale>, ApiError> {
    let set = unless_gone(client.get::<ReplicaSet>(key).await)?;
    let Some(set) = set.filter(|set| set.metadata.uid == owner.uid) else {
        return Ok(None);
    };
    match controller_of(&set.metadata) {
        Some(above) if above.kind == Deployment::KIND => {
            let deployment = Key::new(&key.namespace, &above.name);
            let deployment = deployment.in_resource(Deployment::RESOURCE);
            of_object(client, deployment, &above.uid).await
        }
        _ => Ok(Some((set.metadata.uid, set.spec.replicas.unwrap_or(1)))),
    }
}

/// Returns the scale of a controller of another kind, whose group only the Pod names.
async fn of_any(
    client: &Client,
    definitions: &Reader<DefinitionView>,
    pod: &PodView,
    key: Key,
) -> Result<Option<Scale>, ApiError> {
    let pod = unless_gone(client.get::<Pod>(&pod.meta.key).await)?;
    let Some(owner) = pod.as_ref().and_then(|pod| controller_of(&pod.metadata)) else {
        return Ok(None);
    };
    let definitions = definitions.list();
    let custom = definitions.iter().map(|definition| &**definition);
    match resource_of(&owner.api_version, &owner.kind, custom) {
        Ok(resource) => of_object(client, key.in_resource(resource), &owner.uid).await,
        Err(_) => Ok(None),
    }
}

async fn of_object(client: &Client, of: ObjectRef, uid: &str) -> Result<Option<Scale>, ApiError> {
    let scale = unless_gone(client.scale(&of).await)?;
    let scale = scale.filter(|scale| scale.metadata.uid == uid);
    Ok(scale.map(|scale| (scale.metadata.uid, scale.spec.replicas)))
}

fn unless_gone<T>(read: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match read {
        Err(error) if error.reason == Reason::NotFound => Ok(None),
        read => read.map(Some),
    }
}
