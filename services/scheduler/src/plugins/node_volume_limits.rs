//! NodeVolumeLimits: no more volumes of a CSI driver are attached to a node than its CSINode says.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::Key;

use crate::claim_use::ClaimUse;
use crate::cluster::Cluster;
use crate::cluster_event::ClusterEvent;
use crate::pod::PodView;
use crate::reason::FilterReason;
use crate::storage::CsiVolume;

/// The volumes of a Pod, and the Pods that are added to nodes or removed.
#[derive(Debug, Default)]
pub struct State {
    wanted: BTreeSet<CsiVolume>,
    changes: BTreeMap<usize, BTreeMap<CsiVolume, i64>>,
}

impl State {
    /// Returns the state of a Pod.
    pub fn of(cluster: &Cluster<'_>, pod: &PodView) -> Self {
        Self {
            wanted: volumes(cluster, pod).cloned().collect(),
            changes: BTreeMap::new(),
        }
    }

    /// Adds another Pod to a node, or removes it with a negative number.
    pub fn add(&mut self, cluster: &Cluster<'_>, (other, node): (&PodView, usize), number: i64) {
        if self.wanted.is_empty() {
            return;
        }
        let changes = self.changes.entry(node).or_default();
        for volume in volumes(cluster, other) {
            let change = changes.entry(volume.clone()).or_default();
            *change = change.saturating_add(number);
        }
    }

    /// Returns why a node cannot take the Pod. A volume that several Pods use counts once.
    pub fn filter(&self, cluster: &Cluster<'_>, node: usize) -> Option<FilterReason> {
        let name = cluster.nodes[node].view.name();
        let limits = cluster.snapshot.storage.limits.get(name)?;
        if self.wanted.is_empty() {
            return None;
        }
        let attached = self.attached(cluster, node);
        let exceeds = |(driver, limit): (&String, &i64)| {
            let is_of = |volume: &&CsiVolume| volume.driver == *driver;
            let new = self.wanted.iter().filter(is_of);
            let new = new.filter(|volume| !attached.contains(volume)).count();
            let count = attached.iter().copied().filter(is_of).count();
            let count = i64::try_from(count.saturating_add(new)).unwrap_or(i64::MAX);
            new > 0 && count > *limit
        };
        let mut limits = limits.iter();
        limits.any(exceeds).then_some(FilterReason::TooManyVolumes)
    }

    /// Returns the volumes that the Pods of a node use.
    fn attached<'a>(&'a self, cluster: &'a Cluster<'_>, node: usize) -> BTreeSet<&'a CsiVolume> {
        let mut users: BTreeMap<&CsiVolume, i64> = BTreeMap::new();
        let pods = cluster.pods[node].iter();
        let used = pods.flat_map(|pod| volumes(cluster, pod));
        let changes = self.changes.get(&node).into_iter().flatten();
        let changes = changes.map(|(volume, change)| (volume, *change));
        for (volume, number) in used.map(|volume| (volume, 1)).chain(changes) {
            let users = users.entry(volume).or_default();
            *users = users.saturating_add(number);
        }
        let used = users.into_iter().filter(|(_, users)| *users > 0);
        used.map(|(volume, _)| volume).collect()
    }
}

fn volumes<'a>(cluster: &'a Cluster<'_>, pod: &'a PodView) -> impl Iterator<Item = &'a CsiVolume> {
    let volumes = &cluster.snapshot.storage.csi_volumes;
    let namespace = &pod.meta.key.namespace;
    let find = move |used: &ClaimUse| match volumes.is_empty() {
        true => None,
        false => volumes.get(&Key::new(namespace, &*used.name)),
    };
    pod.claims.iter().filter_map(find)
}

/// Returns whether a change may let the Pod fit: a Pod with claims leaves its node, one of the Pod's claims appears, or
/// a node appears or has other limits.
pub fn hint(pod: &PodView, change: &ClusterEvent) -> bool {
    match change {
        ClusterEvent::Pod {
            old: Some(old),
            new: None,
        } => !old.claims.is_empty(),
        ClusterEvent::Claim { old: None, new } => {
            let key = &new.claim.meta.key;
            let mut claims = pod.claims.iter();
            key.namespace == pod.meta.key.namespace && claims.any(|used| *used.name == *key.name)
        }
        ClusterEvent::VolumeLimits => true,
        change => change.adds_node(),
    }
}
