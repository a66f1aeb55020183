//! What a ReplicaSet is told in annotations: the number of its rollout, and the size of the Deployment it was scaled for.

use std::collections::BTreeMap;

use crate::{Deployment, Set};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX: &str = "deployment.kubernetes.io/max-replicas";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Those that mean one object and no other.
const OWN: [&str; 5] = [REVISION, HISTORY, DESIRED, MAX, LAST_APPLIED];

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
        if let Some(before) = set.meta.annotation(REVISION) {
            let earlier = set
                .meta
                .annotation(HISTORY)
                .map(|history| format!("{history},"));
            annotations.insert(HISTORY.to_owned(), earlier.unwrap_or_default() + before);
        }
    }
    news(annotations, set)
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
