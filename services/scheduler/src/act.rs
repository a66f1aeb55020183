//! Act: executes a decision.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt, Recorder};
use setpoint_model::Revision;
use setpoint_model::volume::{Claim, SELECTED_NODE};
use setpoint_proto::core::{ObjectReference, PersistentVolumeClaim, Pod, PodStatus};
use setpoint_proto::{ApiError, Reason, Resource as _};

use crate::plan::Action;
use crate::pod::PodView;
use crate::status::{self, Nomination};
use crate::storage::Choice;

/// Executes the actions of a scheduler.
pub struct Actor<'a> {
    /// The client of the term.
    pub gateway: &'a Client,
    /// The recorder of Events.
    pub events: &'a Recorder,
    /// The name of the scheduler.
    pub scheduler: &'a str,
    /// The time of the decision.
    pub now: Timestamp,
}

impl Actor<'_> {
    /// Executes an action.
    ///
    /// # Errors
    /// The error of the gateway. `Conflict` and `NotFound` mean that the Pod has changed since it was observed.
    pub async fn act(&self, action: &Action) -> Result<Receipt, ApiError> {
        match action {
            Action::Bind { pod, node, .. } => self.bind(pod, node).await,
            Action::BindVolumes { pod, node, choices } => {
                self.bind_volumes(pod, node, choices).await
            }
            Action::MarkUnschedulable {
                pod,
                message,
                nomination,
                ..
            } => self.mark(pod, message, nomination).await,
            Action::Preempt { pod, victim, node } => self.preempt(pod, victim, node).await,
            Action::Withdraw { nominated, .. } => {
                let wants = nominated.wants.as_ref();
                let status = wants.and_then(|wants| status::without_nomination(&wants.status));
                self.update_status(nominated, status).await
            }
        }
    }

    async fn bind(&self, pod: &PodView, node: &str) -> Result<Receipt, ApiError> {
        let bound = self.gateway.bind(&pod.meta.key, node, &pod.meta.uid);
        let receipt = bound.await?;
        let message = format!("Successfully assigned {} to {node}", pod.meta.key);
        self.events.normal(&reference(pod), "Scheduled", message);
        Ok(receipt)
    }

    /// Nominates the node, so that its room is reserved; then reserves volumes, and selects the node for claims without
    /// any.
    async fn bind_volumes(
        &self,
        pod: &PodView,
        node: &str,
        choices: &[Choice],
    ) -> Result<Receipt, ApiError> {
        let wants = pod.wants.as_ref();
        let status = wants.and_then(|wants| status::nominated(&wants.status, node));
        let mut written = self.update_status(pod, status).await?;
        for Choice { claim, volume } in choices {
            let claim = &claim.claim;
            written = match volume {
                Some(view) if view.volume.is_bound_to(claim) => continue,
                Some(view) => {
                    self.gateway
                        .reserve_volume(&view.volume, &claim.meta)
                        .await?
                }
                None if claim.selected_node() == Some(node) => continue,
                None => self.select_node(claim, node).await?,
            };
        }
        Ok(written)
    }

    async fn select_node(&self, claim: &Claim, node: &str) -> Result<Receipt, ApiError> {
        let meta = &claim.meta;
        let patch = json!({"metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.revision.to_string(),
            "annotations": {SELECTED_NODE: node},
        }});
        let written = self
            .gateway
            .patch::<PersistentVolumeClaim>(&meta.key, "", patch);
        Ok(written.await?.receipt())
    }

    /// Writes the condition and the nominated node, unless the Pod has them already.
    async fn mark(
        &self,
        pod: &Arc<PodView>,
        message: &str,
        nomination: &Nomination,
    ) -> Result<Receipt, ApiError> {
        let about = reference(pod);
        self.events
            .warning(&about, "FailedScheduling", truncated(message));
        let wants = pod.wants.as_ref();
        let (generation, now) = (pod.meta.generation, self.now);
        let status = wants.and_then(|wants| {
            status::unschedulable(&wants.status, generation, message, nomination, now)
        });
        self.update_status(pod, status).await
    }

    async fn update_status(
        &self,
        pod: &PodView,
        status: Option<PodStatus>,
    ) -> Result<Receipt, ApiError> {
        let Some(status) = status else {
            return Ok(Receipt::none());
        };
        let gateway = self.gateway;
        gateway.update_status_of::<Pod>(&pod.meta, status).await
    }

    /// Marks a victim and deletes it with its own grace period. The Pod is read first: a view does not keep its status.
    async fn preempt(
        &self,
        pod: &PodView,
        victim: &PodView,
        node: &str,
    ) -> Result<Receipt, ApiError> {
        let key = &victim.meta.key;
        let mut object = match self.gateway.get::<Pod>(key).await {
            Err(error) if error.reason == Reason::NotFound => return Ok(Receipt::none()),
            read => read?,
        };
        let metadata = &object.metadata;
        if metadata.uid != victim.meta.uid || metadata.deletion_timestamp.is_some() {
            return Ok(Receipt::of(&object));
        }
        let mut revision = Revision::of(metadata);
        if status::mark_as_victim(&mut object, self.scheduler, self.now) {
            revision = self.gateway.update_status(&object).await?.revision;
        }
        let unchanged = Preconditions {
            uid: Some(victim.meta.uid.clone()),
            revision: Some(revision),
        };
        let deleted = self.gateway.delete::<Pod>(key, unchanged, None).await;
        let receipt = Receipt::unless_gone(deleted.map(|deleted| deleted.receipt()))?;
        let message = format!("Preempted by pod {} on node {node}", pod.meta.uid);
        self.events.normal(&reference(victim), "Preempted", message);
        Ok(receipt)
    }
}

/// Returns the message of an Event, which upstream limits to 1024 bytes.
fn truncated(message: &str) -> String {
    const LIMIT: usize = 1024;
    const REST: &str = " ...";
    if message.len() <= LIMIT {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LIMIT - REST.len());
    format!("{}{REST}", &message[..end])
}

fn reference(pod: &PodView) -> ObjectReference {
    ObjectReference {
        kind: Pod::KIND.to_owned(),
        api_version: Pod::API_VERSION.to_owned(),
        namespace: pod.meta.key.namespace.clone(),
        name: pod.meta.key.name.clone(),
        uid: pod.meta.uid.clone(),
        resource_version: pod.meta.revision.to_string(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_an_event_is_cut_at_a_bound() {
        assert_eq!(truncated("short"), "short");
        let whole = "x".repeat(1024);
        assert_eq!(truncated(&whole), whole);
        let cut = truncated(&"ä".repeat(600));
        assert!(cut.len() <= 1024 && cut.ends_with("ä ..."));
    }
}
