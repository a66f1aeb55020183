//! The revisions of a StatefulSet, and the Pods that an update replaces.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_model::labels::Lookup as _;
use setpoint_workload::history::{HASH_LABEL, RevisionChange};
use setpoint_workload::{PodView, RevisionView};

use crate::{Strategy, World};

/// The current and the update revision, which are the same unless an update runs.
pub(crate) struct Rollout<'a> {
    world: &'a World,
    /// The revision before the update.
    pub current: &'a RevisionView,
    /// The revision of the set's template.
    pub update: &'a RevisionView,
}

impl<'a> Rollout<'a> {
    /// Returns the revisions; `None` until the revision of the template exists and is the newest.
    pub fn of(world: &'a World) -> Option<Self> {
        let history = world.history();
        let RevisionChange::Unchanged(update) = history.change(&world.set.snapshot) else {
            return None;
        };
        let current = history.get(&world.set.status.current_revision);
        Some(Self {
            world,
            current: current.unwrap_or(update),
            update,
        })
    }

    /// Returns whether a Pod was made from the current revision.
    pub fn is_current(&self, pod: &PodView) -> bool {
        revision_of(pod) == self.current.name()
    }

    /// Returns whether a Pod was made from the revision of the set's template.
    pub fn is_updated(&self, pod: &PodView) -> bool {
        revision_of(pod) == self.update.name()
    }

    /// Returns whether a revision may be needed again to create a Pod, or names the template of one.
    pub fn is_live(&self, revision: &RevisionView) -> bool {
        let name = revision.name();
        let pods = self.world.members();
        let mut pods = pods.values();
        [self.current.name(), self.update.name()].contains(&name)
            || pods.any(|pod| revision_of(pod) == name)
    }

    /// Returns the revision of a Pod to be created. Without a partition, as many of the lowest ordinals as there are
    /// Pods of the current revision keep it.
    pub fn revision_of_new_pod(&self, ordinal: i64) -> &'a RevisionView {
        let kept = match self.world.set.strategy {
            Strategy::OnDelete => 0,
            Strategy::Rolling { partition, .. } => partition.unwrap_or_else(|| self.pods_kept()),
        };
        let first_updated = self.world.set.ordinals.start.saturating_add(kept);
        match ordinal < first_updated {
            true => self.current,
            false => self.update,
        }
    }

    fn pods_kept(&self) -> i64 {
        let pods = self.world.members();
        let pods = pods.values();
        let kept = pods.filter(|pod| self.is_current(pod) && !pod.meta.deleting);
        i64::try_from(kept.count()).unwrap_or(i64::MAX)
    }

    /// Returns the Pods that the update deletes now, the highest ordinal first.
    pub fn replaced(&self) -> Vec<&'a PodView> {
        let Strategy::Rolling {
            partition,
            max_unavailable,
        } = self.world.set.strategy
        else {
            return Vec::new();
        };
        let set = &self.world.set;
        let first = set.ordinals.start.saturating_add(partition.unwrap_or(0));
        match max_unavailable {
            None => self.next_replaced(first).into_iter().collect(),
            Some(max) => self.replaced_within(first, max),
        }
    }

    /// Returns the first Pod of an old revision, if those of higher ordinals are available. It may itself be
    /// unavailable.
    fn next_replaced(&self, first: i64) -> Option<&'a PodView> {
        let (pods, end) = (self.world.members(), self.world.set.ordinals.end);
        for ordinal in (first..end).rev() {
            let pod = *pods.get(&ordinal)?;
            if self.is_outdated(pod) {
                return Some(pod);
            }
            if !self.world.is_available(pod) {
                return None;
            }
        }
        None
    }

    /// Returns as many Pods of old revisions as may become unavailable. Every Pod that is not available counts, also
    /// those below the partition.
    fn replaced_within(&self, first: i64, max_unavailable: usize) -> Vec<&'a PodView> {
        let (pods, ordinals) = (self.world.members(), &self.world.set.ordinals);
        let in_range = pods.iter().filter(|(it, _)| ordinals.contains(it));
        let available = in_range.filter(|(_, pod)| self.world.is_available(pod));
        let replicas = ordinals.end.saturating_sub(ordinals.start);
        let replicas = usize::try_from(replicas).unwrap_or_default();
        let unavailable = replicas.saturating_sub(available.count());
        let allowed = max_unavailable.saturating_sub(unavailable);
        let candidates = pods.iter().rev();
        let candidates = candidates.filter(|(it, _)| ordinals.contains(it) && **it >= first);
        candidates
            .map(|(_, pod)| *pod)
            .filter(|pod| self.is_outdated(pod))
            .take(allowed)
            .collect()
    }

    /// Returns whether a Pod must be replaced, and is not about to be for another reason.
    fn is_outdated(&self, pod: &PodView) -> bool {
        !self.is_updated(pod) && !pod.meta.deleting && !pod.phase.has_ended()
    }
}

fn revision_of(pod: &PodView) -> &str {
    pod.labels.value(HASH_LABEL).unwrap_or_default()
}
