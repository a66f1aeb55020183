//! Act: executes actions.

use jiff::Timestamp;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt};
use setpoint_model::{Key, Meta, pod};
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::{ApiError, Reason};

use crate::{Action, World};

pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: Action,
) -> Result<Receipt, ApiError> {
    let (Action::MarkFailed { orphaned } | Action::Delete { orphaned }) = action;
    if orphaned {
        ensure_missing(client, world.pod.node.as_deref().unwrap_or_default()).await?;
    }
    let meta = &world.pod.meta;
    Receipt::unless_gone(match action {
        Action::MarkFailed { .. } => mark_failed(client, meta, orphaned).await,
        Action::Delete { .. } => {
            let same = Preconditions::uid(&meta.uid);
            let deleted = client.delete::<Pod>(&meta.key, same, Some(0)).await;
            deleted.map(|written| written.receipt())
        }
    })
}

/// Reads whether a node exists: the cache may lag, and a Pod must not be lost because of that.
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

/// Writes the status of the current version of a Pod, if it is still that Pod and has not ended.
async fn mark_failed(client: &Client, seen: &Meta, orphaned: bool) -> Result<Receipt, ApiError> {
    let mut pod = client.get::<Pod>(&seen.key).await?;
    if pod.metadata.uid != seen.uid || pod::is_terminal(&pod) {
        return Ok(Receipt::none());
    }
    pod.status.phase = "Failed".to_owned();
    pod.status.observed_generation = pod.metadata.generation;
    if orphaned {
        let message = "PodGC: node no longer exists";
        pod::mark_disrupted(&mut pod, "DeletionByPodGC", message, Timestamp::now());
    }
    Ok(client.update_status(&pod).await?.receipt())
}
