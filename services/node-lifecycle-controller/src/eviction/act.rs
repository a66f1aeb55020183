//! Act: executes actions, and records Events about them.

use jiff::Timestamp;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_model::{Key, pod};
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::{ApiError, Reason};

use super::plan::{Action, World};
use super::stay::{Stay, executing};
use crate::PodView;
use crate::pod::BY_TAINT_MANAGER;

pub(super) async fn act(
    client: &Client,
    world: &World,
    action: Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::MarkDisrupted => {
            ensure_untolerated(client, &world.pod).await?;
            Receipt::unless_gone(mark(client, &world.pod).await)
        }
        Action::Delete => {
            ensure_untolerated(client, &world.pod).await?;
            let meta = &world.pod.meta;
            let unchanged = Preconditions::unchanged(meta);
            let deleted = client.delete::<Pod>(&meta.key, unchanged, None).await;
            Receipt::unless_gone(deleted.map(|written| written.receipt()))
        }
        Action::Cancel => Ok(Receipt::none()),
    }
}

/// Reads the taints of the node: the cache may lag, and a Pod must not be lost because of that.
async fn ensure_untolerated(client: &Client, pod: &PodView) -> Result<(), ApiError> {
    let name = pod.node.as_deref().unwrap_or_default();
    let taints = match client.get::<Node>(&Key::new("", name)).await {
        Err(error) if error.reason == Reason::NotFound => Vec::new(),
        node => node?.spec.taints,
    };
    let taints: Vec<_> = executing(&taints).cloned().collect();
    match Stay::of(&pod.tolerations, &taints) {
        Stay::Forever => {
            let message = format!("node {name} has lost the taint meanwhile");
            Err(ApiError::new(Reason::Conflict, message))
        }
        Stay::For(_) | Stay::No => Ok(()),
    }
}

/// Writes the condition of the current version of a Pod, if it is still that Pod.
async fn mark(client: &Client, seen: &PodView) -> Result<Receipt, ApiError> {
    let mut pod = client.get::<Pod>(&seen.meta.key).await?;
    if pod.metadata.uid != seen.meta.uid || pod.metadata.deletion_timestamp.is_some() {
        return Ok(Receipt::none());
    }
    let message = "Taint manager: deleting due to NoExecute taint";
    pod::mark_disrupted(&mut pod, BY_TAINT_MANAGER, message, Timestamp::now());
    Ok(client.update_status(&pod).await?.receipt())
}

/// Records an Event, with the reason and message of upstream, about a Pod that goes or stays.
pub(super) fn record(events: &Recorder, pod: &PodView, action: Action) {
    let verb = match action {
        Action::MarkDisrupted => return,
        Action::Delete => "Marking for deletion",
        Action::Cancel => "Cancelling deletion of",
    };
    let about = events::reference::<Pod>(&pod.meta);
    let message = format!("{verb} Pod {}", pod.meta.key);
    events.normal(&about, "TaintManagerEviction", message);
}
