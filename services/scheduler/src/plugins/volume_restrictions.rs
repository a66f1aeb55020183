//! VolumeRestrictions: a claim with the access mode ReadWriteOncePod is used by one Pod at a time.

#![warn(clippy::arithmetic_side_effects)]

use setpoint_model::Key;

use crate::cluster::Cluster;
use crate::cluster_event::ClusterEvent;
use crate::pod::PodView;
use crate::reason::FilterReason;

/// The other Pods that use exclusive claims of a Pod.
#[derive(Debug, Default)]
pub struct State<'p> {
    exclusive: Vec<&'p str>,
    conflicts: i64,
}

impl<'p> State<'p> {
    /// Counts the Pods on nodes that use an exclusive claim of the Pod.
    pub fn of(cluster: &Cluster<'_>, pod: &'p PodView) -> Self {
        let namespace = &pod.meta.key.namespace;
        let claims = &cluster.snapshot.storage.claims;
        let is_exclusive = |name: &&str| {
            let found = claims.get(&Key::new(namespace, *name));
            found.is_some_and(|(claim, _)| claim.is_exclusive())
        };
        let names = pod.claims.iter().map(|used| &*used.name);
        let mut state = Self {
            exclusive: names.filter(is_exclusive).collect(),
            conflicts: 0,
        };
        if !state.exclusive.is_empty() {
            let others = cluster.pods.iter().flatten();
            others.for_each(|other| state.add(pod, other, 1));
        }
        state
    }

    /// Adds another Pod, or removes it with a negative number.
    pub fn add(&mut self, pod: &PodView, other: &PodView, number: i64) {
        let (own, key) = (&pod.meta.key, &other.meta.key);
        let uses = |name: &&&str| other.claims.iter().any(|used| *used.name == ***name);
        if own.namespace == key.namespace && own != key {
            let shared = self.exclusive.iter().filter(uses).count();
            let shared = i64::try_from(shared).unwrap_or(i64::MAX);
            let change = shared.saturating_mul(number);
            self.conflicts = self.conflicts.saturating_add(change);
        }
    }

    /// Returns why no node can take the Pod.
    pub fn filter(&self) -> Option<FilterReason> {
        (self.conflicts > 0).then_some(FilterReason::ExclusiveClaim)
    }
}

/// Returns whether a change may let the Pod fit: a Pod that uses one of its claims leaves.
pub fn hint(pod: &PodView, change: &ClusterEvent) -> bool {
    let ClusterEvent::Pod {
        old: Some(old),
        new: None,
    } = change
    else {
        return false;
    };
    let shares = |used: &crate::claim_use::ClaimUse| pod.claims.contains(used);
    pod.meta.key.namespace == old.meta.key.namespace && old.claims.iter().any(shares)
}
