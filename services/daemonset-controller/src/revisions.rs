//! Revisions: the one of the current template, and the old ones.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashSet;

use setpoint_controller::Plan;
use setpoint_model::Target;
use setpoint_model::labels::Lookup as _;
use setpoint_workload::history::{HASH_LABEL, History, RevisionChange, Write};
use setpoint_workload::{PodView, RevisionView};

use crate::{Action, World};

/// The label of Pods with the number of their template.
pub(crate) const GENERATION_LABEL: &str = "pod-template-generation";

/// The revisions of a DaemonSet.
pub(crate) struct Revisions<'a> {
    world: &'a World,
    history: History<'a>,
    change: RevisionChange<'a>,
    generation: Option<String>,
}

impl<'a> Revisions<'a> {
    pub fn of(world: &'a World) -> Self {
        let set = &world.set;
        let history = History::of(&set.meta, &world.revisions);
        Self {
            change: history.change(&set.data),
            history,
            generation: set.template_generation().map(|number| number.to_string()),
            world,
        }
    }

    /// Returns whether the newest revision is that of the template.
    pub fn are_current(&self) -> bool {
        matches!(self.change, RevisionChange::Unchanged(_))
    }

    /// Returns whether the template has no revision yet.
    pub fn is_missing(&self) -> bool {
        matches!(self.change, RevisionChange::Create(_))
    }

    /// Returns the hash of the template's revision, which it may be about to get.
    pub fn hash(&self) -> &str {
        self.current()
            .map_or(&self.world.revision_name.hash, hash_of)
    }

    /// Returns whether a Pod was created from the current template. Several revisions of one template, of which the
    /// newest counts, are the same to Pods.
    pub fn is_updated(&self, pod: &PodView) -> bool {
        let value = |label| pod.labels.value(label);
        let generation = self.generation.as_deref();
        let hash = value(HASH_LABEL).unwrap_or_default();
        let known = |revision: &&RevisionView| {
            revision.data == self.world.set.data && hash_of(revision) == hash
        };
        hash == self.hash()
            || (generation.is_some() && value(GENERATION_LABEL) == generation)
            || self.history.revisions().iter().any(known)
    }

    /// Makes the revision of the template the newest.
    pub fn advance(&self, plan: &mut Plan<Action>) {
        if let Some((write, because)) = self.change.write(&self.world.revision_name) {
            plan.step(Action::Revision(write), because);
        }
    }

    /// Deletes old revisions beyond `revisionHistoryLimit`, the oldest first, but not those of Pods that are left.
    pub fn clean_up(&self, plan: &mut Plan<Action>) {
        let current = self.current().map(|current| &current.meta.uid);
        let revisions = self.history.revisions().iter();
        let old: Vec<_> = revisions
            .filter(|revision| Some(&revision.meta.uid) != current && !revision.meta.deleting)
            .collect();
        let surplus = old.len().saturating_sub(self.world.set.history_limit);
        let pods = self.world.claimed();
        let live: HashSet<_> = pods
            .filter_map(|pod| pod.labels.value(HASH_LABEL))
            .collect();
        let unused = old.into_iter().filter(|it| !live.contains(hash_of(it)));
        for revision in unused.take(surplus) {
            let delete = Write::Delete(Target::of(&revision.meta));
            plan.step(
                Action::Revision(delete),
                "more old revisions than the history keeps",
            );
        }
    }

    fn current(&self) -> Option<&'a RevisionView> {
        match self.change {
            RevisionChange::Unchanged(revision) | RevisionChange::Renumber(revision, _) => {
                Some(revision)
            }
            RevisionChange::Create(_) => None,
        }
    }
}

/// Returns the hash that Pods of a revision have in their label; its name if it has none, as upstream.
fn hash_of(revision: &RevisionView) -> &str {
    match revision.hash() {
        "" => revision.name(),
        hash => hash,
    }
}
