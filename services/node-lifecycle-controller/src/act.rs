//! Act: executes actions, and records Events about them.

use serde_json::{Value, json};
use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_model::replicas::NODE_LEASES;
use setpoint_model::{Key, Meta, Target, condition};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::{ApiError, Reason};

use crate::plan::Action;
use crate::{Ready, World};

pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let node = &world.node.meta;
    match action {
        Action::MarkUnknown(conditions) => {
            ensure_silent(client, world).await?;
            let status = json!({"conditions": conditions.0});
            patch(client, node, "status", json!({"status": status})).await
        }
        Action::Taint(change) => {
            let spec = json!({"taints": change.apply(&world.node.taints)});
            patch(client, node, "", json!({"spec": spec})).await
        }
        Action::Label(labels) => {
            let labels = json!({"uid": node.uid, "labels": labels});
            let patch = json!({"metadata": labels});
            Ok(client.patch::<Node>(&node.key, "", patch).await?.receipt())
        }
        Action::MarkPodNotReady(pod) => mark_pod(client, world, pod).await,
    }
}

/// Patches the version of a node that was observed.
async fn patch(
    client: &Client,
    node: &Meta,
    subresource: &str,
    mut patch: Value,
) -> Result<Receipt, ApiError> {
    patch["metadata"] = json!({"uid": node.uid, "resourceVersion": node.revision.to_string()});
    let patched = client.patch::<Node>(&node.key, subresource, patch);
    Ok(patched.await?.receipt())
}

/// Reads the Lease of a node: the cache may lag, and a node must not be lost because of that.
async fn ensure_silent(client: &Client, world: &World) -> Result<(), ApiError> {
    let name = &world.node.meta.key.name;
    let renewed = match client.get::<Lease>(&Key::new(NODE_LEASES, name)).await {
        Err(error) if error.reason == Reason::NotFound => None,
        lease => lease?.spec.renew_time,
    };
    match renewed.is_none() || renewed == world.signs.renewed {
        true => Ok(()),
        false => {
            let message = format!("the Lease of node {name} was renewed meanwhile");
            Err(ApiError::new(Reason::Conflict, message))
        }
    }
}

/// Writes the condition `Ready` of the current version of a Pod, if it is still that Pod, on that node and ready.
async fn mark_pod(client: &Client, world: &World, seen: &Target) -> Result<Receipt, ApiError> {
    let mut pod = match client.get::<Pod>(&seen.key).await {
        Err(error) if error.reason == Reason::NotFound => return Ok(Receipt::none()),
        pod => pod?,
    };
    let ours = pod.metadata.uid == seen.uid && pod.spec.node_name == world.node.meta.key.name;
    let ready = condition::get(&pod.status.conditions, "Ready").cloned();
    let Some(mut ready) = ready.filter(|ready| ours && ready.status == condition::TRUE) else {
        return Ok(Receipt::none());
    };
    condition::FALSE.clone_into(&mut ready.status);
    ready.last_transition_time = world.now.into();
    condition::set(&mut pod.status.conditions, ready);
    Ok(client.update_status(&pod).await?.receipt())
}

/// Records an Event, with the reason and message of upstream, about a write that succeeded.
pub(crate) fn record(events: &Recorder, world: &World, action: &Action) {
    match action {
        Action::MarkUnknown(_) if world.node.ready() == Ready::Yes => {
            let about = events::reference::<Node>(&world.node.meta);
            let name = &world.node.meta.key.name;
            let message = format!("Node {name} status is now: NodeNotReady");
            events.normal(&about, "NodeNotReady", message);
        }
        Action::MarkPodNotReady(pod) => {
            let meta = Meta {
                key: pod.key.clone(),
                uid: pod.uid.clone(),
                revision: pod.revision,
                ..Meta::default()
            };
            let about = events::reference::<Pod>(&meta);
            events.warning(&about, "NodeNotReady", "Node is not ready");
        }
        _ => {}
    }
}
