//! The reasons for which the rollout of a workload is not complete. Pure.

use setpoint_model::condition::{self, Condition, FALSE, TRUE};
use setpoint_proto::setpoint::Wait;

use super::{not_observed, wait};

/// The progress of a workload.
#[derive(Default)]
pub(crate) struct Rollout {
    pub observed_generation: i64,
    pub paused: bool,
    /// The waits that its conditions and numbers report, apart from the Pods that are not ready.
    pub reported: Vec<Wait>,
    /// The number of wanted Pods.
    pub wanted: i32,
    /// The number of ready Pods.
    pub ready: i32,
}

impl Rollout {
    /// Returns what a workload of this generation waits for.
    pub fn waits(self, generation: i64) -> Vec<Wait> {
        let mut waits = Vec::new();
        if self.observed_generation < generation {
            waits.push(not_observed(generation, self.observed_generation));
        }
        if self.paused {
            let message = "its rollout is paused: kubectl rollout resume goes on";
            waits.push(wait("Paused", message));
        }
        waits.extend(self.reported);
        let (wanted, ready) = (self.wanted, self.ready);
        if ready < wanted {
            let message = format!("{ready} of {wanted} Pods are ready");
            waits.push(wait("NotReady", message));
        }
        waits
    }
}

/// Returns the conditions that report a failure.
pub fn failures(conditions: &[impl Condition]) -> Vec<Wait> {
    let failures = [("Progressing", FALSE), ("ReplicaFailure", TRUE)];
    let failures = failures.into_iter().filter_map(|(kind, failed)| {
        let condition = condition::get(conditions, kind)?;
        let failed = condition.status() == failed;
        failed.then(|| wait(condition.reason(), condition.message()))
    });
    failures.collect()
}
