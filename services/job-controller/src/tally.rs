//! Tally: what the Pods of a Job count for.
//!
//! Each Pod is counted once, whatever is lost between two of these writes:
//!
//! ```text
//! create with the finalizer ─▶ it ends ─▶ status: its uid is uncounted, or its index is completed
//!                          ─▶ remove the finalizer ─▶ status: count + 1, its uid is no longer uncounted
//! ```
//!
//! A Pod without the finalizer is either counted, or was chosen to be deleted and counts for nothing.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_proto::batch::UncountedTerminatedPods;

use crate::failure_policy::{Handling, handling};
use crate::pod::Failures;
use crate::{Ending, Indexes, JobPodView, JobView, World};

/// What a Pod counts for, once it no longer runs for the Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// A success.
    Success,
    /// A failure.
    Failure,
    /// Nothing, or nothing more.
    Nothing,
}

/// The successes and failures of a Job, with those of Pods that are not counted yet.
pub(crate) struct Tally<'w> {
    job: &'w JobView,
    /// The uids in the stored status whose Pods are not counted yet.
    uncounted_succeeded: HashSet<&'w str>,
    uncounted_failed: HashSet<&'w str>,
    /// The number of succeeded Pods or indexes.
    pub succeeded: usize,
    /// The number of failed Pods that count.
    pub failed: usize,
    /// The completed indexes in the stored status.
    stored_indexes: Indexes,
    /// The completed indexes.
    pub completed_indexes: Indexes,
    /// The failed indexes.
    pub failed_indexes: Indexes,
    /// The last failed Pod of each index that has no later Pod. It stays tracked until there is one, since its
    /// annotations hold the failures of the index.
    last_failed: HashMap<usize, &'w Arc<JobPodView>>,
}

impl<'w> Tally<'w> {
    pub fn of(world: &'w World) -> Self {
        let job = &*world.job;
        static NONE: UncountedTerminatedPods = UncountedTerminatedPods {
            succeeded: Vec::new(),
            failed: Vec::new(),
        };
        let uncounted = job
            .status
            .uncounted_terminated_pods
            .as_ref()
            .unwrap_or(&NONE);
        let stored_indexes = Indexes::parse(&job.status.completed_indexes, job.index_count());
        let mut tally = Self {
            job,
            uncounted_succeeded: uncounted.succeeded.iter().map(String::as_str).collect(),
            uncounted_failed: uncounted.failed.iter().map(String::as_str).collect(),
            succeeded: 0,
            failed: 0,
            completed_indexes: stored_indexes.clone(),
            stored_indexes,
            failed_indexes: Indexes::default(),
            last_failed: HashMap::new(),
        };
        if job.indexed {
            tally.count_indexes(world);
        }
        tally.succeeded = tally.count_succeeded(world);
        tally.failed = tally.count_failed(world);
        tally
    }

    fn count_indexes(&mut self, world: &'w World) {
        let job = self.job;
        let indexed = || {
            world
                .tracked()
                .filter(|pod| job.has_index(pod.details().index))
        };
        let succeeded = indexed().filter(|pod| self.is_success(pod));
        let succeeded: Indexes = succeeded.filter_map(|pod| pod.details().index).collect();
        self.completed_indexes = self.stored_indexes.union(&succeeded);
        let Some(limit) = job.backoff_limit_per_index else {
            return;
        };
        let failed = indexed().filter(|pod| is_failed(job, pod) && fails_index(job, pod, limit));
        let failed: Indexes = failed.filter_map(|pod| pod.details().index).collect();
        let stored = job.status.failed_indexes.as_deref().unwrap_or_default();
        self.failed_indexes = Indexes::parse(stored, job.index_count()).union(&failed);
        let active: HashSet<_> = world
            .active()
            .filter_map(|pod| pod.details().index)
            .collect();
        for pod in indexed().filter(|pod| is_failed(job, pod)) {
            let Some(index) = pod.details().index.filter(|index| !active.contains(index)) else {
                continue;
            };
            if !self.completed_indexes.contains(index) && !self.failed_indexes.contains(index) {
                let last = self.last_failed.entry(index).or_insert(pod);
                if rank(last) < rank(pod) {
                    *last = pod;
                }
            }
        }
    }

    fn count_succeeded(&self, world: &World) -> usize {
        if self.job.indexed {
            return self.completed_indexes.count();
        }
        let new = world
            .tracked()
            .filter(|pod| self.is_success(pod) && !self.is_stored(pod));
        let counted = usize::try_from(self.job.status.succeeded).unwrap_or_default();
        counted
            .saturating_add(self.uncounted_succeeded.len())
            .saturating_add(new.count())
    }

    fn count_failed(&self, world: &World) -> usize {
        let new = world.tracked().filter(|pod| {
            is_failed(self.job, pod) && !self.is_stored(pod) && self.failure(pod) == Count::Failure
        });
        let counted = usize::try_from(self.job.status.failed).unwrap_or_default();
        counted
            .saturating_add(self.uncounted_failed.len())
            .saturating_add(new.count())
    }

    /// Returns what a tracked Pod counts for; `None` if that is not known yet.
    pub fn count(&self, pod: &JobPodView, ending: Option<Ending>) -> Option<Count> {
        let job = self.job;
        let index = pod.details().index;
        if self.is_success(pod) {
            let counts = !job.indexed
                || index.is_some_and(|index| {
                    job.has_index(Some(index)) && !self.stored_indexes.contains(index)
                });
            return Some(if counts {
                Count::Success
            } else {
                Count::Nothing
            });
        }
        let is_last = || self.last_failed(index).is_some_and(|last| same(last, pod));
        match ending {
            // When the Job fails, all of its Pods that have not succeeded do.
            Some(Ending::Failure) => Some(self.failure(pod)),
            Some(Ending::Success) if !is_failed(job, pod) => Some(Count::Nothing),
            _ if job.meta.deleting && !is_failed(job, pod) => Some(Count::Nothing),
            _ if !is_failed(job, pod) => None,
            None if !job.meta.deleting && is_last() => None,
            _ => Some(self.failure(pod)),
        }
    }

    /// Returns what a Pod counts for that has failed.
    fn failure(&self, pod: &JobPodView) -> Count {
        let known = !self.job.indexed || self.job.has_index(pod.details().index);
        match known && handling(self.job, pod) != Handling::Ignore {
            true => Count::Failure,
            false => Count::Nothing,
        }
    }

    fn is_success(&self, pod: &JobPodView) -> bool {
        pod.has_succeeded() && !self.uncounted_failed.contains(&*pod.base.meta.uid)
    }

    /// Returns whether the stored status has the uid of a Pod.
    pub fn is_stored(&self, pod: &JobPodView) -> bool {
        let uid = &*pod.base.meta.uid;
        self.uncounted_succeeded.contains(uid) || self.uncounted_failed.contains(uid)
    }

    /// Returns the last failed Pod of an index that has no later Pod.
    pub fn last_failed(&self, index: Option<usize>) -> Option<&'w Arc<JobPodView>> {
        self.last_failed.get(&index?).copied()
    }

    /// Returns the failures of an index before its next Pod.
    pub fn failures(&self, index: usize) -> Failures {
        let Some(last) = self.last_failed(Some(index)) else {
            return Failures::default();
        };
        let mut failures = last.details().failures;
        match handling(self.job, last) {
            Handling::Ignore => failures.ignored = failures.ignored.saturating_add(1),
            _ => failures.counted = failures.counted.saturating_add(1),
        }
        failures
    }
}

/// Returns whether a Pod has failed. A terminating one counts as failed unless only ended Pods are replaced.
pub(crate) fn is_failed(job: &JobView, pod: &JobPodView) -> bool {
    let terminates = pod.base.meta.deleting && !pod.has_succeeded();
    pod.has_failed() || (terminates && !job.replaces_ended_only)
}

/// Returns whether the failure of a Pod fails its index.
fn fails_index(job: &JobView, pod: &JobPodView, limit: i32) -> bool {
    match handling(job, pod) {
        Handling::FailIndex => true,
        Handling::Ignore => false,
        Handling::Count | Handling::FailJob(_) => pod.details().failures.counted >= limit,
    }
}

/// The order of the failed Pods of an index.
fn rank(pod: &JobPodView) -> (i32, jiff::Timestamp, &str) {
    let details = pod.details();
    (details.failures.all(), details.ended, &pod.base.meta.uid)
}

fn same(one: &JobPodView, other: &JobPodView) -> bool {
    one.base.meta.uid == other.base.meta.uid
}
