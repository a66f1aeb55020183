//! What must hold at every revision of a cluster's history, whatever a test did: checked when its cluster is dropped.

use std::collections::HashMap;

use prost::Message as _;
use setpoint_model::percent;
use setpoint_proto::apps::{Deployment, ReplicaSet};

use crate::etcd_log::Entry;

/// The number of versions of a Deployment's spec that a controller may act on: it may not have seen the last ones yet.
const VERSIONS: usize = 3;

/// Returns the violations of a history.
pub fn violations(entries: &[Entry]) -> Vec<String> {
    let mut rollouts = Rollouts::default();
    entries
        .iter()
        .filter_map(|entry| rollouts.apply(entry))
        .collect()
}

/// The state of all Deployments and ReplicaSets at a revision.
#[derive(Default)]
pub struct Rollouts {
    /// The largest number of Pods that each of the last versions of a Deployment allows, by uid.
    bounds: HashMap<String, Vec<i32>>,
    /// The uid of the owner and the desired number of Pods of each ReplicaSet, by key.
    sets: HashMap<String, (String, i32)>,
}

impl Rollouts {
    /// Follows a change. Returns a violation of D1: a ReplicaSet was scaled up so far that all sets of its Deployment
    /// have more Pods than its replicas and its surge.
    pub fn apply(&mut self, entry: &Entry) -> Option<String> {
        if entry.key.starts_with("/registry/deployments/") {
            let deployment = Deployment::decode(entry.object.clone()?).ok()?;
            let bounds = self.bounds.entry(deployment.metadata.uid.clone());
            let (bounds, bound) = (bounds.or_default(), bound(&deployment));
            if bounds.last() != Some(&bound) {
                bounds.push(bound);
            }
            return None;
        }
        if !entry.key.starts_with("/registry/replicasets/") {
            return None;
        }
        let Some(object) = entry.object.clone() else {
            self.sets.remove(&entry.key);
            return None;
        };
        let set = ReplicaSet::decode(object).ok()?;
        let owners = &set.metadata.owner_references;
        let owner = owners.iter().find(|owner| owner.controller == Some(true));
        let owner = owner.map(|owner| owner.uid.clone()).unwrap_or_default();
        let replicas = set.spec.replicas.unwrap_or(1);
        let before = self
            .sets
            .insert(entry.key.clone(), (owner.clone(), replicas));
        let grew = before.is_none_or(|(_, before)| replicas > before);
        let by_controller = entry.cause.writer == "deployment-controller";
        (grew && by_controller)
            .then(|| self.exceeded(&owner, entry))
            .flatten()
    }

    fn exceeded(&self, owner: &str, entry: &Entry) -> Option<String> {
        let bounds = self.bounds.get(owner)?.iter().rev().take(VERSIONS);
        let bound = *bounds.max()?;
        let siblings = self.sets.values().filter(|(of, _)| of == owner);
        let total: i32 = siblings.map(|(_, replicas)| replicas).sum();
        let (key, revision) = (&entry.key, entry.revision);
        (total > bound).then(|| {
            format!(
                "D1 at revision {revision}: with {key}, {total} Pods are desired, {bound} at most"
            )
        })
    }
}

/// Returns the number of Pods that a Deployment allows during a rollout.
fn bound(deployment: &Deployment) -> i32 {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let rolling = deployment.spec.strategy.rolling_update.as_ref();
    let number = |field: Option<&_>, up| {
        field.map_or(0, |field| {
            percent::resolve(field, replicas, up).unwrap_or_default()
        })
    };
    let surge = rolling.map_or(0, |rolling| number(rolling.max_surge.as_ref(), true));
    replicas.saturating_add(surge)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use setpoint_proto::Cause;
    use setpoint_proto::apps::RollingUpdateDeployment;
    use setpoint_proto::meta::{IntOrString, OwnerReference};

    use super::*;

    fn entry(key: &str, object: Vec<u8>, writer: &str) -> Entry {
        Entry {
            revision: 7,
            seen: Instant::now(),
            key: key.to_owned(),
            object: Some(object.into()),
            created: false,
            cause: Cause {
                writer: writer.to_owned(),
                ..Cause::default()
            },
            value: Default::default(),
        }
    }

    fn deployment(replicas: i32) -> Entry {
        let mut deployment = Deployment::default();
        deployment.metadata.uid = "d".into();
        deployment.spec.replicas = Some(replicas);
        deployment.spec.strategy.rolling_update = Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString {
                r#type: 1,
                str_val: "25%".into(),
                ..IntOrString::default()
            }),
            ..RollingUpdateDeployment::default()
        });
        entry(
            "/registry/deployments/default/web",
            deployment.encode_to_vec(),
            "kubectl",
        )
    }

    fn set(name: &str, replicas: i32, writer: &str) -> Entry {
        let mut set = ReplicaSet::default();
        set.spec.replicas = Some(replicas);
        set.metadata.owner_references.push(OwnerReference {
            uid: "d".into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        let key = format!("/registry/replicasets/default/{name}");
        entry(&key, set.encode_to_vec(), writer)
    }

    #[test]
    fn more_pods_than_a_rollout_allows_are_a_violation() {
        let controller = "deployment-controller";
        let allowed = [
            deployment(4),
            set("old", 4, controller),
            set("new", 1, controller),
        ];
        assert_eq!(violations(&allowed), Vec::<String>::new());
        let exceeded = [&allowed[..], &[set("new", 2, controller)]].concat();
        assert_eq!(violations(&exceeded).len(), 1);
        let by_user = [&allowed[..], &[set("new", 2, "kubectl")]].concat();
        assert!(violations(&by_user).is_empty());
        let unseen = [
            &exceeded[..3],
            &[deployment(8), deployment(4)],
            &exceeded[3..],
        ]
        .concat();
        assert!(
            violations(&unseen).is_empty(),
            "it may act on an older version"
        );
    }
}
