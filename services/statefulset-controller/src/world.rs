//! Observe: takes a snapshot of a StatefulSet, its Pods, their claims, and its revisions.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Owns as _, Reader};
use setpoint_model::Key;
use setpoint_workload::history::Name;
use setpoint_workload::{History, Phase, PodView, RevisionView};

use crate::plan::BURST;
use crate::{ClaimView, StatefulSetView, StatefulSets};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The StatefulSet.
    pub set: Arc<StatefulSetView>,
    /// The Pods that it owns, and orphans of its namespace, in any order.
    pub pods: Vec<Arc<PodView>>,
    /// The revisions that it owns, and orphans of its namespace, in any order.
    pub revisions: Vec<Arc<RevisionView>>,
    /// The claims of its Pods by their names, including those of the next Pods to be created.
    pub claims: BTreeMap<String, Arc<ClaimView>>,
    /// The name that a revision of its template has or gets.
    pub revision_name: Name,
    /// The current time.
    pub now: Timestamp,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the set is gone.
    pub(crate) fn observe(caches: &StatefulSets, key: &Key, inputs: Inputs) -> Option<Self> {
        let set = caches.sets.get(key)?;
        let mut world = Self {
            pods: caches.pods.candidates(&set.meta),
            revisions: caches.revisions.candidates(&set.meta),
            revision_name: revision_name(&set, &caches.revisions),
            set,
            claims: BTreeMap::new(),
            now: inputs.now,
        };
        world.claims = world.find_claims(&caches.claims);
        Some(world)
    }

    /// Returns the claims of all Pods, and of as many missing ones as a plan can create.
    fn find_claims(&self, claims: &Reader<ClaimView>) -> BTreeMap<String, Arc<ClaimView>> {
        if self.set.claim_templates.is_empty() {
            return BTreeMap::new();
        }
        let pods = self.members();
        let missing = self.set.ordinals.clone();
        let missing = missing.filter(|ordinal| !pods.contains_key(ordinal));
        let ordinals = pods.keys().copied().chain(missing.take(BURST));
        let names = ordinals.flat_map(|ordinal| self.claim_names(ordinal));
        let found = names.filter_map(|name| {
            let claim = claims.get(&Key::new(&self.set.meta.key.namespace, &name))?;
            Some((name, claim))
        });
        found.collect()
    }

    /// Returns the names of the claims of the Pod with this ordinal.
    pub(crate) fn claim_names(&self, ordinal: i64) -> impl Iterator<Item = String> {
        let templates = self.set.claim_templates.iter();
        templates.map(move |template| self.set.claim_name(template, ordinal))
    }

    /// Returns the claims of the Pod with this ordinal that exist.
    pub(crate) fn claims_of(&self, ordinal: i64) -> impl Iterator<Item = &ClaimView> {
        let names = self.claim_names(ordinal);
        names.filter_map(|name| self.claims.get(&name).map(|claim| &**claim))
    }

    /// Returns the owned Pods by their ordinals. Those that are to be released do not count.
    pub fn members(&self) -> BTreeMap<i64, &PodView> {
        let pods = self.pods.iter().map(|pod| &**pod);
        let owned = pods.filter(|pod| pod.meta.is_owned_by(&self.set.meta.uid));
        let members = owned.filter(|pod| self.set.selects(*pod));
        let ordinal = |pod: &PodView| self.set.ordinal(&pod.meta.key.name);
        members
            .filter_map(|pod| Some((ordinal(pod)?, pod)))
            .collect()
    }

    /// Returns the owned revisions.
    pub fn history(&self) -> History<'_> {
        History::of(&self.set.meta, &self.revisions)
    }

    /// Returns the time until a Pod is available: zero if it is, `None` if it is not ready.
    pub fn available_in(&self, pod: &PodView) -> Option<Duration> {
        pod.available_in(self.set.min_ready_seconds, self.now)
    }

    /// Returns whether a Pod is available and is not being deleted.
    pub fn is_available(&self, pod: &PodView) -> bool {
        let available = self.available_in(pod);
        available.is_some_and(|wait| wait.is_zero()) && !pod.meta.deleting
    }
}

/// Returns whether a Pod is running and ready.
pub(crate) fn is_ready(pod: &PodView) -> bool {
    pod.phase == Phase::Running && pod.ready_since.is_some()
}

/// Returns the name of the revision of the set's template: that of its own revision, or one that no other object has.
fn revision_name(set: &StatefulSetView, revisions: &Reader<RevisionView>) -> Name {
    let is_taken = |name: &str| {
        let revision = revisions.get(&Key::new(&set.meta.key.namespace, name));
        revision.is_some_and(|it| !it.meta.is_owned_by(&set.meta.uid) || it.data != set.snapshot)
    };
    let collisions = set.status.collision_count.unwrap_or_default();
    set.snapshot.name(&set.meta, collisions, is_taken)
}
