//! A Pod, as far as the set that owns it is concerned.

use std::mem;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_machinery::View;
use setpoint_model::{Labels, Meta, pod};
use setpoint_proto::core;

/// Pods that cost less are deleted first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// How far a Pod has come, in the order in which Pods are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not started.
    Pending,
    /// Its node does not say.
    Unknown,
    /// Started.
    Running,
    /// Succeeded or failed. It counts no more.
    Ended,
}

/// What is kept of each Pod of the cluster: little, since there are many.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Who it is, without labels and annotations.
    pub meta: Meta,
    /// Its labels, packed.
    pub labels: Labels,
    /// How far it has come.
    pub phase: Phase,
    /// Where it runs.
    pub node: Option<Box<str>>,
    /// Since when it can serve.
    pub ready_since: Option<Timestamp>,
    /// Restarts of its most restless container.
    pub restarts: i32,
    /// What the user says its loss would cost.
    pub deletion_cost: i32,
}

impl View for Pod {
    type Object = core::Pod;

    fn of(pod: core::Pod) -> Self {
        let mut meta = Meta::of(&pod.metadata);
        let cost = mem::take(&mut meta.annotations).remove(DELETION_COST);
        let restarts = pod
            .status
            .container_statuses
            .iter()
            .map(|container| container.restart_count);
        Self {
            labels: mem::take(&mut meta.labels).into(),
            meta,
            phase: phase(&pod.status.phase),
            ready_since: pod::ready_since(&pod),
            restarts: restarts.max().unwrap_or_default(),
            deletion_cost: cost.and_then(|cost| cost.parse().ok()).unwrap_or_default(),
            node: (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.into()),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Orphans are found by their namespace.
    fn tag(&self) -> Option<&str> {
        self.meta
            .owner
            .is_none()
            .then_some(&self.meta.key.namespace)
    }
}

impl Pod {
    /// Does it run, or will it, without being on its way out?
    pub fn is_active(&self) -> bool {
        self.phase != Phase::Ended && !self.meta.deleting
    }

    /// Is it being stopped?
    pub fn is_terminating(&self) -> bool {
        self.phase != Phase::Ended && self.meta.deleting
    }

    /// How long until it is available: zero if it is, `None` if it is not even ready.
    pub fn available_in(&self, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
        pod::available_in(self.ready_since, min_ready_seconds, now)
    }
}

fn phase(phase: &str) -> Phase {
    match phase {
        "Succeeded" | "Failed" => Phase::Ended,
        "Running" => Phase::Running,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}
