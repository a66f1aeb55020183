//! Observe: takes a snapshot of a Job and its Pods.
#![warn(clippy::arithmetic_side_effects)]

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::Key;

use crate::{JobPodView, JobView};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Job.
    pub job: Arc<JobView>,
    /// The Pods that it controls, and orphans that it selects, in any order. None if it is not managed.
    pub pods: Vec<Arc<JobPodView>>,
    /// Pods with the tracking finalizer that no Job counts: those of a former Job of this name, or of this one if it
    /// has finished, and orphans with its name in their labels.
    pub strays: Vec<Arc<JobPodView>>,
    /// The current time.
    pub now: Timestamp,
    /// A random number, for the names of new Pods.
    pub seed: u64,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the Job is gone and has left no Pods.
    pub(crate) fn observe(
        jobs: &Reader<JobView>,
        pods: &Reader<JobPodView>,
        key: &Key,
        Inputs { now, seed, .. }: Inputs,
    ) -> Option<Self> {
        let known = jobs.get(key);
        let exists = known.is_some();
        let job = known.unwrap_or_else(|| Arc::new(JobView::gone(key)));
        let named = pods.tagged(&key.to_string());
        let (own, mut strays): (Vec<_>, Vec<_>) = named
            .into_iter()
            .partition(|pod| pod.base.meta.is_owned_by(&job.meta.uid));
        let mut world = Self {
            job,
            pods: Vec::new(),
            strays: Vec::new(),
            now,
            seed,
        };
        match world.job.is_managed() {
            true => world.pods = own,
            false if !world.job.external => strays.extend(own),
            false => {}
        }
        let orphans = pods.tagged(&key.namespace);
        let (selected, others): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|pod| world.job.adopts(pod));
        world.pods.extend(selected);
        strays.extend(
            others
                .into_iter()
                .filter(|pod| stray_key(jobs, pod).as_ref() == Some(key)),
        );
        strays.retain(|pod| pod.is_tracked());
        world.strays = strays;
        (exists || !world.strays.is_empty()).then_some(world)
    }

    /// Returns the Pods that it controls, whatever their phase.
    pub fn owned(&self) -> impl Iterator<Item = &Arc<JobPodView>> {
        let owned = |pod: &&Arc<JobPodView>| pod.base.meta.is_owned_by(&self.job.meta.uid);
        self.pods.iter().filter(owned)
    }

    /// Returns the owned Pods that are not counted yet.
    pub fn tracked(&self) -> impl Iterator<Item = &Arc<JobPodView>> {
        self.owned().filter(|pod| pod.is_tracked())
    }

    /// Returns the owned Pods that are active.
    pub fn active(&self) -> impl Iterator<Item = &Arc<JobPodView>> {
        self.owned().filter(|pod| pod.base.is_active())
    }

    /// Returns the owned Pods that are terminating.
    pub fn terminating(&self) -> impl Iterator<Item = &Arc<JobPodView>> {
        self.owned().filter(|pod| pod.base.is_terminating())
    }
}

/// Returns the keys of the Jobs that a Pod concerns: its controller, or, for an orphan, all that would adopt it. If
/// none would adopt a tracked orphan, the Job in its labels is responsible for its finalizer.
pub fn keys_of(jobs: &Reader<JobView>, pod: &JobPodView) -> Vec<Key> {
    let meta = &pod.base.meta;
    match &meta.owner {
        _ if !pod.is_of_job() => Vec::new(),
        Some(owner) => vec![Key::new(&meta.key.namespace, &owner.name)],
        None => match stray_key(jobs, pod) {
            Some(key) => vec![key],
            None => adopters(jobs, pod),
        },
    }
}

fn adopters(jobs: &Reader<JobView>, pod: &JobPodView) -> Vec<Key> {
    let mut adopters = jobs.in_namespace(&pod.base.meta.key.namespace);
    adopters.retain(|job| job.adopts(pod));
    adopters.iter().map(|job| job.meta.key.clone()).collect()
}

/// Returns the key of the Job, perhaps a former one, that removes the finalizer of an orphan that no Job would adopt.
fn stray_key(jobs: &Reader<JobView>, orphan: &JobPodView) -> Option<Key> {
    let key = || Key::new(&orphan.base.meta.key.namespace, orphan.job_name());
    (orphan.is_tracked() && adopters(jobs, orphan).is_empty()).then(key)
}
