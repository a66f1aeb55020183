//! The replay of etcd's history while it is written, so that neither its compaction nor its length matters.

use std::collections::HashMap;

use prost::Message as _;
use setpoint_proto::batch::Job;
use setpoint_tests::{Address, Entry, EtcdLog, Rollouts};

/// The annotation with the scheduled time of a CronJob's Job.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What must hold at every revision.
pub struct History {
    log: EtcdLog,
    /// The revision of the last entry that was applied.
    applied: i64,
    rollouts: Rollouts,
    ticks: Ticks,
    /// The number of writes.
    pub writes: u64,
    /// The violations.
    pub problems: Vec<String>,
}

impl History {
    /// Starts to follow the etcd at this address.
    pub fn of(etcd: &Address) -> Self {
        Self {
            log: EtcdLog::of(etcd),
            applied: 0,
            rollouts: Rollouts::default(),
            ticks: Ticks::default(),
            writes: 0,
            problems: Vec::new(),
        }
    }

    /// Checks what has been delivered since the last call.
    pub fn step(&mut self) {
        let entries = self.log.drain();
        self.apply(&entries);
    }

    /// Checks everything that was committed before the call.
    pub fn finish(&mut self) {
        let entries = self.log.all();
        self.apply(&entries);
    }

    fn apply(&mut self, entries: &[Entry]) {
        // The newest entry is delivered again.
        let new = entries.iter().filter(|entry| entry.revision > self.applied);
        for entry in new {
            self.writes += 1;
            self.problems.extend(self.rollouts.apply(entry));
            self.problems.extend(self.ticks.apply(entry));
        }
        self.applied = entries.last().map_or(self.applied, |last| last.revision);
    }
}

/// The Jobs that each scheduled time of a CronJob has had.
#[derive(Default)]
struct Ticks {
    jobs: HashMap<(String, String), String>,
}

impl Ticks {
    /// Follows a change. Returns a violation if a second Job was created for a scheduled time, even after the first.
    fn apply(&mut self, entry: &Entry) -> Option<String> {
        if !entry.created || !entry.key.starts_with("/registry/jobs/") {
            return None;
        }
        let job = Job::decode(entry.object.clone()?).ok()?;
        let tick = job.metadata.annotations.get(SCHEDULED)?.clone();
        let owner = job.metadata.owner_references.first()?.uid.clone();
        let key = entry.key.clone();
        let earlier = self.jobs.insert((owner, tick.clone()), key.clone())?;
        Some(format!(
            "J1 at revision {}: {key} is for {tick}, as {earlier} was",
            entry.revision
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use setpoint_proto::meta::OwnerReference;

    use super::*;

    fn created(name: &str, tick: &str) -> Entry {
        let mut job = Job::default();
        job.metadata.annotations = [(SCHEDULED.to_owned(), tick.to_owned())].into();
        job.metadata
            .owner_references
            .push(OwnerReference::default());
        Entry {
            revision: 7,
            seen: Instant::now(),
            key: format!("/registry/jobs/default/{name}"),
            object: Some(job.encode_to_vec().into()),
            created: true,
            cause: Default::default(),
            value: Default::default(),
        }
    }

    #[test]
    fn a_second_job_for_a_scheduled_time_is_a_violation() {
        let mut ticks = Ticks::default();
        assert_eq!(ticks.apply(&created("a", "1")), None);
        assert_eq!(ticks.apply(&created("b", "2")), None);
        assert!(ticks.apply(&created("c", "1")).is_some());
    }
}
