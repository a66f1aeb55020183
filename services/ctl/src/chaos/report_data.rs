//! Computes the effects of a fault from the writes and changes that were observed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use setpoint_model::Revision;
use tokio::time::Instant;

/// A write of the service under test, as observed by a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The lease term under which it was made.
    pub term: u64,
    /// The revision of the commit.
    pub revision: Revision,
    /// When the watch delivered it.
    pub at: Instant,
}

/// Returns the time from the last write under `term` to the first write under a later term; `None` without one of them.
pub fn leaderless_time(writes: &[Write], term: u64) -> Option<Duration> {
    let last = writes.iter().filter(|write| write.term == term);
    let last = last.map(|write| write.at).max()?;
    let next = writes.iter().filter(|write| write.term > term);
    let next = next.map(|write| write.at).min()?;
    Some(next.saturating_duration_since(last))
}

/// Returns the number of writes committed after a write of a later term. Writes may be given in any order.
pub fn late_writes(writes: &[Write]) -> usize {
    let mut writes = writes.to_vec();
    writes.sort_by_key(|write| write.revision);
    let mut highest = 0;
    let is_late = |write: &Write| {
        highest = highest.max(write.term);
        write.term < highest
    };
    writes.into_iter().filter(is_late).count()
}

/// A change of the wanted or the actual number of Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodChange {
    /// The wanted number of Pods of a ReplicaSet; 0 after its deletion.
    Wanted { set: String, replicas: usize },
    /// An active Pod of a ReplicaSet.
    Active { set: String, pod: String },
    /// A Pod that is not active any more.
    Ended { pod: String },
}

/// Counts Pods that were created beyond the wanted number, over the changes of all ReplicaSets.
#[derive(Debug, Default)]
pub struct PodCounter {
    sets: BTreeMap<String, Set>,
}

#[derive(Debug, Default)]
struct Set {
    wanted: usize,
    /// The maximum of `wanted` since the last [`PodCounter::settle`]: a controller may act on an older number.
    max_wanted: usize,
    pods: BTreeSet<String>,
}

impl PodCounter {
    /// Applies changes in the order of their commits, and returns how many extra Pods they created.
    pub fn apply(&mut self, changes: &mut [(Revision, PodChange)]) -> usize {
        changes.sort_by_key(|(revision, _)| *revision);
        let changes = changes.iter();
        changes.filter(|(_, change)| self.apply_one(change)).count()
    }

    /// Declares that all controllers have seen the current numbers: earlier ones do not excuse extra Pods any more.
    pub fn settle(&mut self) {
        self.sets
            .retain(|_, set| set.wanted > 0 || !set.pods.is_empty());
        for set in self.sets.values_mut() {
            set.max_wanted = set.wanted;
        }
    }

    fn apply_one(&mut self, change: &PodChange) -> bool {
        match change {
            PodChange::Wanted { set, replicas } => {
                let set = self.sets.entry(set.clone()).or_default();
                set.wanted = *replicas;
                set.max_wanted = set.max_wanted.max(*replicas);
                false
            }
            PodChange::Active { set, pod } => {
                let set = self.sets.entry(set.clone()).or_default();
                set.pods.insert(pod.clone()) && set.pods.len() > set.max_wanted
            }
            PodChange::Ended { pod } => {
                self.sets
                    .values_mut()
                    .for_each(|set| _ = set.pods.remove(pod));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: u64) -> Revision {
        number.to_string().parse().unwrap()
    }

    fn writes(of: &[(u64, u64, u64)]) -> Vec<Write> {
        let begin = Instant::now();
        let write = |&(term, number, at): &(u64, u64, u64)| Write {
            term,
            revision: revision(number),
            at: begin + Duration::from_millis(at),
        };
        of.iter().map(write).collect()
    }

    #[test]
    fn the_leaderless_time_lasts_from_the_last_write_of_a_term_to_the_first_of_the_next() {
        let writes = writes(&[
            (3, 10, 0),
            (3, 12, 40),
            (3, 11, 35),
            (4, 15, 2340),
            (4, 16, 2350),
        ]);
        assert_eq!(
            leaderless_time(&writes, 3),
            Some(Duration::from_millis(2300))
        );
        assert_eq!(leaderless_time(&writes, 4), None, "it still leads");
        assert_eq!(leaderless_time(&writes, 2), None, "it never wrote");
        assert_eq!(late_writes(&writes), 0);
    }

    #[test]
    fn a_write_is_late_by_its_revision_and_not_by_its_delivery() {
        assert_eq!(late_writes(&writes(&[(4, 20, 0), (3, 19, 5)])), 0);
        assert_eq!(
            late_writes(&writes(&[(4, 20, 0), (3, 21, 5), (4, 22, 6)])),
            1
        );
    }

    fn wanted(replicas: usize) -> PodChange {
        let set = "s".to_owned();
        PodChange::Wanted { set, replicas }
    }

    fn active(pod: &str) -> PodChange {
        let (set, pod) = ("s".to_owned(), pod.to_owned());
        PodChange::Active { set, pod }
    }

    fn ended(pod: &str) -> PodChange {
        let pod = pod.to_owned();
        PodChange::Ended { pod }
    }

    fn apply(counter: &mut PodCounter, changes: &[PodChange]) -> usize {
        let numbered = changes.iter().enumerate();
        let mut changes: Vec<_> = numbered
            .map(|(number, change)| (revision(number as u64 + 1), change.clone()))
            .collect();
        changes.reverse(); // the order of delivery does not matter
        counter.apply(&mut changes)
    }

    #[test]
    fn a_pod_beyond_the_wanted_number_is_extra() {
        let mut counter = PodCounter::default();
        let changes = [
            wanted(2),
            active("a"),
            active("b"),
            active("a"),
            active("c"),
        ];
        assert_eq!(apply(&mut counter, &changes), 1);
    }

    #[test]
    fn a_pod_that_replaces_another_is_not_extra() {
        let mut counter = PodCounter::default();
        let changes = [wanted(1), active("a"), ended("a"), active("b")];
        assert_eq!(apply(&mut counter, &changes), 0);
    }

    #[test]
    fn a_number_wanted_before_settling_does_not_excuse_a_pod_created_after() {
        let mut counter = PodCounter::default();
        let changes = [wanted(2), active("a"), active("b"), wanted(1), ended("a")];
        assert_eq!(apply(&mut counter, &changes), 0);
        assert_eq!(apply(&mut counter, &[active("c")]), 0, "seen late");
        apply(&mut counter, &[ended("c")]);
        counter.settle();
        assert_eq!(apply(&mut counter, &[active("d")]), 1);
    }
}
