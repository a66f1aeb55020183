//! Reckoning: from what the watches told to what a round has cost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use setpoint_model::Revision;
use tokio::time::Instant;

/// A write of the service under test, as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The lease term under which it was made.
    pub term: u64,
    /// When it was committed.
    pub revision: Revision,
    /// When it was told.
    pub at: Instant,
}

/// How long nobody led after `term`: from the last write under it to the first write under a later one.
pub fn leaderless(writes: &[Write], term: u64) -> Option<Duration> {
    let last = writes.iter().filter(|write| write.term == term);
    let last = last.map(|write| write.at).max()?;
    let next = writes.iter().filter(|write| write.term > term);
    let next = next.map(|write| write.at).min()?;
    Some(next.saturating_duration_since(last))
}

/// Writes that were committed although a later term had written already. Told order may differ from committed order.
pub fn late(writes: &[Write]) -> usize {
    let mut writes = writes.to_vec();
    writes.sort_by_key(|write| write.revision);
    let mut highest = 0;
    let is_late = |write: &Write| {
        highest = highest.max(write.term);
        write.term < highest
    };
    writes.into_iter().filter(is_late).count()
}

/// A change that matters for whether there are too many Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A ReplicaSet that is to have so many Pods; 0 once it is gone.
    Wanted { set: String, replicas: usize },
    /// A Pod of it that counts.
    Active { set: String, pod: String },
    /// A Pod that counts no more.
    Ended { pod: String },
}

/// The Pods of every ReplicaSet, followed from change to change.
#[derive(Debug, Default)]
pub struct Census {
    sets: BTreeMap<String, Set>,
}

#[derive(Debug, Default)]
struct Set {
    wanted: usize,
    /// The most that were wanted since the last rest: a controller may not have seen the newest number yet.
    most: usize,
    pods: BTreeSet<String>,
}

impl Census {
    /// Takes in what has happened, in the order of its commits, and answers how many Pods were created too many.
    pub fn follow(&mut self, changes: &mut [(Revision, Change)]) -> usize {
        changes.sort_by_key(|(revision, _)| *revision);
        let changes = changes.iter();
        changes.filter(|(_, change)| self.exceeds(change)).count()
    }

    /// Everything rests: from now on only what is wanted now is right.
    pub fn rest(&mut self) {
        self.sets
            .retain(|_, set| set.wanted > 0 || !set.pods.is_empty());
        for set in self.sets.values_mut() {
            set.most = set.wanted;
        }
    }

    fn exceeds(&mut self, change: &Change) -> bool {
        match change {
            Change::Wanted { set, replicas } => {
                let set = self.sets.entry(set.clone()).or_default();
                set.wanted = *replicas;
                set.most = set.most.max(*replicas);
                false
            }
            Change::Active { set, pod } => {
                let set = self.sets.entry(set.clone()).or_default();
                set.pods.insert(pod.clone()) && set.pods.len() > set.most
            }
            Change::Ended { pod } => {
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
    fn nobody_leads_from_the_last_write_of_a_term_to_the_first_of_the_next() {
        let writes = writes(&[
            (3, 10, 0),
            (3, 12, 40),
            (3, 11, 35),
            (4, 15, 2340),
            (4, 16, 2350),
        ]);
        assert_eq!(leaderless(&writes, 3), Some(Duration::from_millis(2300)));
        assert_eq!(leaderless(&writes, 4), None, "it still leads");
        assert_eq!(leaderless(&writes, 2), None, "it never wrote");
        assert_eq!(late(&writes), 0);
    }

    #[test]
    fn a_write_is_late_by_its_commit_and_not_by_when_it_was_told() {
        assert_eq!(late(&writes(&[(4, 20, 0), (3, 19, 5)])), 0);
        assert_eq!(late(&writes(&[(4, 20, 0), (3, 21, 5), (4, 22, 6)])), 1);
    }

    fn wanted(replicas: usize) -> Change {
        let set = "s".to_owned();
        Change::Wanted { set, replicas }
    }

    fn active(pod: &str) -> Change {
        let (set, pod) = ("s".to_owned(), pod.to_owned());
        Change::Active { set, pod }
    }

    fn ended(pod: &str) -> Change {
        let pod = pod.to_owned();
        Change::Ended { pod }
    }

    fn follow(census: &mut Census, changes: &[Change]) -> usize {
        let numbered = changes.iter().enumerate();
        let mut changes: Vec<_> = numbered
            .map(|(number, change)| (revision(number as u64 + 1), change.clone()))
            .collect();
        changes.reverse(); // they are told in any order
        census.follow(&mut changes)
    }

    #[test]
    fn a_pod_beyond_what_is_wanted_was_created_twice() {
        let mut census = Census::default();
        let told = [
            wanted(2),
            active("a"),
            active("b"),
            active("a"),
            active("c"),
        ];
        assert_eq!(follow(&mut census, &told), 1);
    }

    #[test]
    fn a_pod_that_replaces_another_is_none_too_many() {
        let mut census = Census::default();
        let told = [wanted(1), active("a"), ended("a"), active("b")];
        assert_eq!(follow(&mut census, &told), 0);
    }

    #[test]
    fn what_was_wanted_before_a_rest_excuses_nothing_after_it() {
        let mut census = Census::default();
        let told = [wanted(2), active("a"), active("b"), wanted(1), ended("a")];
        assert_eq!(follow(&mut census, &told), 0);
        assert_eq!(follow(&mut census, &[active("c")]), 0, "seen late");
        follow(&mut census, &[ended("c")]);
        census.rest();
        assert_eq!(follow(&mut census, &[active("d")]), 1);
    }
}
