//! Annotations of ReplicaSets: the revision, and the size of the Deployment for which the set was scaled.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_model::Template;

use crate::{DeploymentView, ReplicaSetView};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// The hashes of a template as it was sent and as the gateway stored it; see [`stored`].
const STORED: &str = "setpoint.dev/stored-template";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The maximum length of the history, in bytes; upstream's limit.
const HISTORY_LIMIT: usize = 2_000;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// Annotations that are not copied from a Deployment to its ReplicaSets.
const NOT_COPIED: [&str; 7] = [
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    LAST_APPLIED,
    ROLLBACK_TO,
    STORED,
];

/// Annotations to be set; others are left as they are.
pub(crate) type Annotations = BTreeMap<String, String>;

/// Returns the annotations with the Deployment's size, from which [`scale_proportionally`] computes later changes.
///
/// [`scale_proportionally`]: crate::scaling::scale_proportionally
pub(crate) fn size(deployment: &DeploymentView) -> Annotations {
    let numbers = [(DESIRED, deployment.replicas), (MAX, deployment.max_pods())];
    numbers
        .map(|(name, number)| (name.to_owned(), number.to_string()))
        .into()
}

/// Returns the annotations of a new ReplicaSet.
pub(crate) fn initial(deployment: &DeploymentView, revision: i64) -> Annotations {
    let mut annotations = inherited(deployment);
    annotations.extend(size(deployment));
    annotations.insert(REVISION.to_owned(), revision.to_string());
    annotations
}

/// Returns the annotations of the new ReplicaSet that must change: those copied from the Deployment, such as
/// `kubernetes.io/change-cause`, and the revision if it is lower than `revision`.
pub(crate) fn refresh(
    deployment: &DeploymentView,
    set: &ReplicaSetView,
    revision: i64,
) -> Annotations {
    let mut annotations = inherited(deployment);
    if set.revision() < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string());
        let before = set.meta.annotation(REVISION);
        if before.is_some_and(|before| before.parse::<i64>().is_ok()) {
            let history = history(set.meta.annotation(HISTORY), set.revision());
            annotations.insert(HISTORY.to_owned(), history);
        }
    }
    changed(annotations, set)
}

/// Appends a revision to a history; drops the oldest ones if it exceeds [`HISTORY_LIMIT`].
fn history(previous: Option<&str>, revision: i64) -> String {
    let previous = previous.filter(|previous| !previous.is_empty());
    let whole = previous.map_or(revision.to_string(), |previous| {
        format!("{previous},{revision}")
    });
    let mut history = whole.as_str();
    while history.len() > HISTORY_LIMIT {
        history = history.split_once(',').map_or("", |(_, newer)| newer);
    }
    history.to_owned()
}

/// Returns the annotation of a ReplicaSet whose stored template differs from the one that was sent, for example because
/// the gateway dropped an unknown field.
///
/// A set with this annotation counts as a set of the template that was sent. Without it, every reconcile would find
/// another template, and create one more set (kubernetes/kubernetes#142189).
pub(crate) fn stored(sent: &Template, stored: &Template) -> Annotations {
    let hashes = format!("{} as {}", sent.hash(None), stored.hash(None));
    [(STORED.to_owned(), hashes)].into()
}

/// Returns the annotations that the set does not have with the same value.
pub(crate) fn changed(mut annotations: Annotations, set: &ReplicaSetView) -> Annotations {
    annotations.retain(|name, value| set.meta.annotation(name) != Some(value));
    annotations
}

fn inherited(deployment: &DeploymentView) -> Annotations {
    let mut annotations = deployment.meta.annotations.clone();
    annotations.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    annotations
}
