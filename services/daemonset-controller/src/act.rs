//! Act: executes actions and records Events about them.

use setpoint_controller::client::Preconditions;
use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_model::placement::{NAME_FIELD, target_node};
use setpoint_model::{Key, Target};
use setpoint_proto::apps::DaemonSet;
use setpoint_proto::core::{
    Affinity, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
};
use setpoint_proto::{ApiError, Reason, core};
use setpoint_workload::PodWrite;
use setpoint_workload::history::HASH_LABEL;

use crate::plan::Found;
use crate::revisions::GENERATION_LABEL;
use crate::{Action, DaemonSetView};

pub(crate) async fn act(
    client: &Client,
    set: &DaemonSetView,
    action: &Action,
) -> Result<Receipt, ApiError> {
    match action {
        Action::Pod(change) => {
            let claimed = client.claim::<DaemonSet, core::Pod>(&set.meta, change);
            claimed.await
        }
        Action::Revision(write) => {
            let labels = &set.template.metadata.labels;
            let written = write.act::<DaemonSet>(client, &set.meta, labels, &set.data);
            written.await
        }
        Action::Create { name, node, hash } => {
            let pod = new_pod(set, name, node, hash);
            let same = |taken: &core::Pod| {
                target_node(&taken.spec) == Some(node)
                    && taken.metadata.labels.get(HASH_LABEL) == Some(hash)
            };
            let created = client.create_or_take(&set.meta, &pod, same).await?;
            Ok(created.receipt())
        }
        Action::Delete {
            pod,
            node,
            found: Found::Lost,
        } => delete_lost(client, pod, node).await,
        // With a resourceVersion: a Pod that was relabelled since may no longer belong to the set.
        Action::Delete { pod, .. } => client.delete_unchanged::<core::Pod>(pod).await,
    }
}

/// Deletes a Pod of a node that does not exist, without a grace period: nothing would end it. The cache of nodes may be
/// behind that of Pods, so the node is read first.
async fn delete_lost(client: &Client, pod: &Target, node: &str) -> Result<Receipt, ApiError> {
    match client.get::<Node>(&Key::new("", node)).await {
        Ok(_) => return Ok(Receipt::none()),
        Err(error) if error.reason != Reason::NotFound => return Err(error),
        Err(_) => {}
    }
    let unchanged = Preconditions {
        uid: Some(pod.uid.clone()),
        revision: Some(pod.revision),
    };
    let deleted = client.delete::<core::Pod>(&pod.key, unchanged, Some(0));
    Receipt::unless_gone(deleted.await.map(|deleted| deleted.receipt()))
}

/// Returns a Pod of the template for a node. The scheduler binds it, since only one node has the name in its affinity.
fn new_pod(set: &DaemonSetView, name: &str, node: &str, hash: &str) -> core::Pod {
    let mut pod = setpoint_workload::new_pod::<DaemonSet>(&set.meta, &set.template, name);
    pod.metadata.generate_name = set.prefix();
    let labels = &mut pod.metadata.labels;
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    let generation = set.template_generation();
    labels.extend(generation.map(|number| (GENERATION_LABEL.to_owned(), number.to_string())));
    require_node(pod.spec.affinity.get_or_insert_default(), node);
    pod
}

/// Replaces the required node affinity, which the node was chosen by, by its name.
fn require_node(affinity: &mut Affinity, node: &str) {
    let named = NodeSelectorRequirement {
        key: NAME_FIELD.to_owned(),
        operator: "In".to_owned(),
        values: vec![node.to_owned()],
    };
    let term = NodeSelectorTerm {
        match_fields: vec![named],
        ..Default::default()
    };
    let affinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![term],
    });
}

/// Records Events with the reasons and messages of upstream. Errors that the next reconcile resolves are not recorded.
pub(crate) fn record(
    events: &Recorder,
    set: &DaemonSetView,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let about = events::reference::<DaemonSet>(&set.meta);
    let write = match action {
        Action::Create { name, .. } => PodWrite::Create(name),
        Action::Delete { pod, node, found } => {
            if result.is_ok() {
                record_found(events, &about, pod, node, *found);
            }
            PodWrite::Delete(&pod.key.name)
        }
        _ => return,
    };
    write.record(events, &about, result);
}

fn record_found(
    events: &Recorder,
    about: &ObjectReference,
    pod: &Target,
    node: &str,
    found: Found,
) {
    let pod = &pod.key;
    match found {
        Found::Failed => {
            let message =
                format!("Found failed daemon pod {pod} on node {node}, will try to kill it");
            events.warning(about, "FailedDaemonPod", message);
        }
        Found::Succeeded => {
            let message =
                format!("Found succeeded daemon pod {pod} on node {node}, will try to delete it");
            events.normal(about, "SucceededDaemonPod", message);
        }
        Found::Alive | Found::Lost => {}
    }
}
