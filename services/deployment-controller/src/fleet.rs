//! The sets of a Deployment: the one of the current template, and the old ones.
#![warn(clippy::arithmetic_side_effects)]

use crate::{Deployment, Set, World};

/// A Deployment with its own sets, sorted out.
pub(crate) struct Fleet<'a> {
    pub deployment: &'a Deployment,
    /// The set of the current template; the oldest, should there be several.
    pub new: Option<&'a Set>,
    /// All others, oldest first.
    pub old: Vec<&'a Set>,
    namesake: Option<&'a Set>,
}

impl<'a> Fleet<'a> {
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
            new: new.map(|place| old.remove(place)),
            old,
            namesake: world.namesake.as_deref(),
        }
    }

    /// The old sets, then the new one.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &'a Set> {
        self.old.iter().copied().chain(self.new)
    }

    /// Sets that shall have Pods, the new one last.
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &'a Set> {
        self.all().filter(|set| set.replicas > 0)
    }

    /// The sum of a number over all sets.
    pub fn sum(&self, number: impl Fn(&Set) -> i32) -> i32 {
        self.all().map(number).fold(0, i32::saturating_add)
    }

    /// Has every set's controller reported on what the set was last told? Until then nobody knows how many Pods there are.
    pub fn has_followed(&self) -> bool {
        self.all().all(Set::has_followed)
    }

    /// The revision that the new set has, or would get.
    pub fn revision(&self) -> i64 {
        let newest = self
            .old
            .iter()
            .map(|set| set.revision())
            .max()
            .unwrap_or_default()
            .max(0);
        self.new
            .map_or(0, Set::revision)
            .max(newest.saturating_add(1))
    }

    /// Is the name of the missing new set taken, and not by an orphan that will be ours? Then another collision count
    /// must give it another name.
    pub fn collides(&self) -> bool {
        let to_be_ours = |set: &Set| {
            set.meta.owner.is_none() && self.deployment.selector.matches(&set.meta.labels)
        };
        self.new.is_none() && self.namesake.is_some_and(|set| !to_be_ours(set))
    }

    /// Was the Deployment's size changed since a set with Pods was last scaled?
    pub fn is_resized(&self) -> bool {
        let other_size = |set: &Set| {
            set.desired()
                .is_some_and(|desired| desired != self.deployment.replicas)
        };
        self.active().any(other_size)
    }
}
