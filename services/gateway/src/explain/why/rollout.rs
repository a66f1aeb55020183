//! The reasons for which the rollout of a workload is not complete. Pure.

use setpoint_codec::Object;
use setpoint_model::condition::{self, Condition, FALSE, TRUE};
use setpoint_proto::apps::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use setpoint_proto::core::ReplicationController;
use setpoint_proto::setpoint::Wait;

use super::waits::{not_observed, wait};

/// Returns what a workload waits for; nothing for other kinds.
pub(super) fn waits(object: &dyn Object) -> Vec<Wait> {
    Rollout::of(object)
        .map(|rollout| rollout.waits(object.meta().generation))
        .unwrap_or_default()
}

/// The progress of a workload.
#[derive(Default)]
struct Rollout {
    observed_generation: i64,
    paused: bool,
    /// What its conditions and numbers report, apart from the Pods that are not ready.
    reported: Vec<Wait>,
    wanted: i32,
    ready: i32,
}

impl Rollout {
    fn of(object: &dyn Object) -> Option<Self> {
        if let Some(Deployment { spec, status, .. }) = object.downcast_ref() {
            return Some(Self {
                observed_generation: status.observed_generation,
                paused: spec.paused,
                reported: failures(&status.conditions),
                wanted: spec.replicas.unwrap_or_default(),
                ready: status.ready_replicas,
            });
        }
        if let Some(StatefulSet { spec, status, .. }) = object.downcast_ref() {
            return Some(Self {
                observed_generation: status.observed_generation,
                wanted: spec.replicas.unwrap_or_default(),
                ready: status.ready_replicas,
                ..Self::default()
            });
        }
        if let Some(DaemonSet { spec, status, .. }) = object.downcast_ref() {
            let mode = spec.update_strategy.r#type.as_str();
            let missing = outdated(
                status.updated_number_scheduled,
                status.desired_number_scheduled,
                mode,
            );
            return Some(Self {
                observed_generation: status.observed_generation,
                reported: misplaced(status.number_misscheduled)
                    .into_iter()
                    .chain(missing)
                    .collect(),
                wanted: status.desired_number_scheduled,
                ready: status.number_ready,
                ..Self::default()
            });
        }
        if let Some(ReplicationController { spec, status, .. }) = object.downcast_ref() {
            return Some(Self {
                observed_generation: status.observed_generation,
                reported: failures(&status.conditions),
                wanted: spec.replicas.unwrap_or_default(),
                ready: status.ready_replicas,
                ..Self::default()
            });
        }
        let ReplicaSet { spec, status, .. } = object.downcast_ref()?;
        Some(Self {
            observed_generation: status.observed_generation,
            reported: failures(&status.conditions),
            wanted: spec.replicas.unwrap_or_default(),
            ready: status.ready_replicas,
            ..Self::default()
        })
    }

    fn waits(self, generation: i64) -> Vec<Wait> {
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

/// Returns that not all Pods of a DaemonSet are of the current template.
fn outdated(updated: i32, wanted: i32, strategy: &str) -> Option<Wait> {
    let next = match strategy {
        "OnDelete" => "OnDelete: one is updated when it is deleted",
        _ => "they are updated node by node",
    };
    let message = || format!("{updated} of {wanted} Pods are of the current template; {next}");
    (updated < wanted).then(|| wait("NotUpdated", message()))
}

/// Returns that a DaemonSet has Pods on nodes that should not run it.
fn misplaced(nodes: i32) -> Option<Wait> {
    let message = || format!("{nodes} nodes have a Pod and should not run one");
    (nodes > 0).then(|| wait("Misscheduled", message()))
}

/// Returns the conditions that report a failure.
fn failures(conditions: &[impl Condition]) -> Vec<Wait> {
    let failures = [("Progressing", FALSE), ("ReplicaFailure", TRUE)];
    let failures = failures.into_iter().filter_map(|(kind, failed)| {
        let condition = condition::get(conditions, kind)?;
        let failed = condition.status() == failed;
        failed.then(|| wait(condition.reason(), condition.message()))
    });
    failures.collect()
}
