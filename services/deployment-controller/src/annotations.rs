//! What a ReplicaSet is told in annotations: the number of its rollout, and the size of the Deployment it was scaled for.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_model::Template;

use crate::{Deployment, Set};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// The hash of a template as it was sent, and as the gateway stored it; see [`stored`].
const STORED: &str = "setpoint.dev/stored-template";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The longest history, in bytes.
const HISTORY_LIMIT: usize = 2_000;
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// Those that mean one object and no other.
const OWN: [&str; 7] = [
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    LAST_APPLIED,
    ROLLBACK_TO,
    STORED,
];

/// Annotations to be set; those not named stay.
pub(crate) type Annotations = BTreeMap<String, String>;

/// The size for which a set is scaled: by it a later change of size is shared out in proportion.
pub(crate) fn size(deployment: &Deployment) -> Annotations {
    let numbers = [(DESIRED, deployment.replicas), (MAX, deployment.max_pods())];
    numbers
        .map(|(name, number)| (name.to_owned(), number.to_string()))
        .into()
}

/// What a new set starts with.
pub(crate) fn fresh(deployment: &Deployment, revision: i64) -> Annotations {
    let mut annotations = handed_on(deployment);
    annotations.extend(size(deployment));
    annotations.insert(REVISION.to_owned(), revision.to_string());
    annotations
}

/// What has to change on the set of the current template, so that it carries at least this revision and what the user
/// annotated the Deployment with, the cause of the change included.
pub(crate) fn refreshed(deployment: &Deployment, set: &Set, revision: i64) -> Annotations {
    let mut annotations = handed_on(deployment);
    if set.revision() < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string());
        let before = set.meta.annotation(REVISION);
        if before.is_some_and(|before| before.parse::<i64>().is_ok()) {
            let history = history(set.meta.annotation(HISTORY), set.revision());
            annotations.insert(HISTORY.to_owned(), history);
        }
    }
    news(annotations, set)
}

/// Adds a revision to the history of a set; the oldest ones go once it is longer than upstream's limit.
fn history(known: Option<&str>, revision: i64) -> String {
    let known = known.filter(|known| !known.is_empty());
    let whole = known.map_or(revision.to_string(), |known| format!("{known},{revision}"));
    let mut history = whole.as_str();
    while history.len() > HISTORY_LIMIT {
        history = history.split_once(',').map_or("", |(_, newer)| newer);
    }
    history.to_owned()
}

/// Tells that the gateway stored a template otherwise than it was sent: for example without a field that it does not know.
///
/// A set with this annotation is a set of the template that was sent. Without it, every look at the set would see another
/// template, and ask for one more set (kubernetes/kubernetes#142189).
pub(crate) fn stored(sent: &Template, stored: &Template) -> Annotations {
    let hashes = format!("{} as {}", sent.hash(None), stored.hash(None));
    [(STORED.to_owned(), hashes)].into()
}

/// Those that the set does not carry yet.
pub(crate) fn news(mut annotations: Annotations, set: &Set) -> Annotations {
    annotations.retain(|name, value| set.meta.annotation(name) != Some(value));
    annotations
}

fn handed_on(deployment: &Deployment) -> Annotations {
    let mut annotations = deployment.meta.annotations.clone();
    annotations.retain(|name, _| !OWN.contains(&name.as_str()));
    annotations
}
