//! The ReplicaSets of a Deployment: the one of the current template, and the old ones.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_proto::apps::DeploymentStatus;

use crate::{DeploymentView, ReplicaSetView, World};

/// A Deployment and the ReplicaSets that it owns.
pub(crate) struct ReplicaSets<'a> {
    pub deployment: &'a DeploymentView,
    /// The set of the current template; the oldest if there are several.
    pub new: Option<&'a ReplicaSetView>,
    /// All other sets, oldest first.
    pub old: Vec<&'a ReplicaSetView>,
    name_conflict: Option<&'a ReplicaSetView>,
}

impl<'a> ReplicaSets<'a> {
    pub fn of(world: &'a World) -> Self {
        let deployment = &*world.deployment;
        let owned = world
            .sets
            .iter()
            .filter(|set| set.meta.is_owned_by(&deployment.meta.uid));
        let mut old: Vec<_> = owned.map(|set| &**set).collect();
        old.sort_by_key(|set| (set.meta.created, &set.meta.key));
        let new = old
            .iter()
            .position(|set| set.is_of_template(&deployment.packed));
        Self {
            deployment,
            new: new.map(|index| old.remove(index)),
            old,
            name_conflict: world.name_conflict.as_deref(),
        }
    }

    /// Returns the old sets, then the new one.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &'a ReplicaSetView> {
        self.old.iter().copied().chain(self.new)
    }

    /// Returns the sets whose desired number of Pods is positive, the new one last.
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &'a ReplicaSetView> {
        self.all().filter(|set| set.replicas > 0)
    }

    /// Returns the sum of a number over all sets.
    pub fn sum(&self, number: impl Fn(&ReplicaSetView) -> i32) -> i32 {
        self.all().map(number).fold(0, i32::saturating_add)
    }

    /// Returns whether the status of every set reflects its spec. If not, the number of Pods is unknown.
    pub fn are_observed(&self) -> bool {
        self.all().all(ReplicaSetView::is_observed)
    }

    /// Returns the revision that the new set has or will get.
    pub fn revision(&self) -> i64 {
        let newest = self
            .old
            .iter()
            .map(|set| set.revision())
            .max()
            .unwrap_or_default()
            .max(0);
        self.new
            .map_or(0, ReplicaSetView::revision)
            .max(newest.saturating_add(1))
    }

    /// Returns whether the new set is missing and its name is taken by a set that will not be adopted. An incremented
    /// collision count then gives it another name.
    pub fn collides(&self) -> bool {
        let is_adoptable = |set: &ReplicaSetView| {
            set.meta.owner.is_none() && self.deployment.selector.matches(&set.meta.labels)
        };
        self.new.is_none() && self.name_conflict.is_some_and(|set| !is_adoptable(set))
    }

    /// Returns whether the Deployment was resized after a set with Pods was last scaled.
    pub fn is_resized(&self) -> bool {
        let other_size = |set: &ReplicaSetView| {
            set.desired()
                .is_some_and(|desired| desired != self.deployment.replicas)
        };
        self.active().any(other_size)
    }

    /// Returns the counts of Pods, without conditions and collision count.
    pub fn counts(&self) -> DeploymentStatus {
        let available = self.sum(|set| set.status.available_replicas);
        let terminating =
            |set: &ReplicaSetView| set.status.terminating_replicas.unwrap_or_default();
        DeploymentStatus {
            replicas: self.sum(|set| set.status.replicas),
            updated_replicas: self.new.map_or(0, |set| set.status.replicas),
            ready_replicas: self.sum(|set| set.status.ready_replicas),
            available_replicas: available,
            unavailable_replicas: self
                .sum(|set| set.replicas)
                .saturating_sub(available)
                .max(0),
            terminating_replicas: Some(self.sum(terminating)),
            ..Default::default()
        }
    }
}
