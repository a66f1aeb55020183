//! A view of a Pod, as the controllers of workloads read it.
#![warn(clippy::arithmetic_side_effects)]

use std::mem;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{View, orphan_tag};
use setpoint_model::{Labels, Meta, placement, pod};
use setpoint_proto::core;

/// Pods of a lower cost are deleted first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The phase of a Pod, in the order in which Pods are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not started.
    Pending,
    /// The node does not report it.
    Unknown,
    /// Started.
    Running,
    /// All of its containers have ended, and none will be restarted.
    Succeeded,
    /// As [`Self::Succeeded`], and one of them failed, or the node has rejected it.
    Failed,
}

impl Phase {
    /// Returns whether it is final: such a Pod is no longer counted.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// Whether the node has accepted a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The node has not decided, or the Pod is not scheduled.
    Undecided,
    /// The node has started to run it.
    Accepted,
    /// It failed before any of its containers ran: `OutOfcpu`, `NodeAffinity`, `UnexpectedAdmissionError` and the like.
    Rejected,
}

impl Admission {
    fn of(status: &core::PodStatus) -> Self {
        let containers = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses);
        let ran = containers.into_iter().any(has_run);
        match status.phase.as_str() {
            "Failed" if !ran => Self::Rejected,
            "Running" => Self::Accepted,
            _ if ran || status.start_time.is_some() => Self::Accepted,
            _ => Self::Undecided,
        }
    }

    /// Returns whether the node has accepted it.
    pub fn is_accepted(self) -> bool {
        self == Self::Accepted
    }

    /// Returns whether the node has rejected it.
    pub fn is_rejected(self) -> bool {
        self == Self::Rejected
    }
}

fn has_run(container: &core::ContainerStatus) -> bool {
    let (now, before) = (&container.state, &container.last_state);
    now.running.is_some() || now.terminated.is_some() || before.terminated.is_some()
}

/// The fields of a Pod that controllers of workloads read. Kept small, since all Pods of the cluster are cached.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The labels in a compact form.
    pub labels: Labels,
    /// The phase.
    pub phase: Phase,
    /// Whether the node has accepted it.
    pub admission: Admission,
    /// The node that it is bound to.
    pub node: Option<Box<str>>,
    /// The node that its affinity names while it is not bound.
    pub wanted_node: Option<Box<str>>,
    /// Since when it is ready.
    pub ready_since: Option<Timestamp>,
    /// The largest restart count of its containers.
    pub restarts: i32,
    /// The largest restart count of its sidecars.
    pub sidecar_restarts: i32,
    /// The deletion cost that the user assigned.
    pub deletion_cost: i32,
    /// Its volumes that are claims: the names of volume and claim.
    pub claims: Box<[(Box<str>, Box<str>)]>,
    /// Whether its node has evicted it.
    pub evicted: bool,
    /// Whether it is being deleted without a grace period: only finalizers hold it.
    pub released: bool,
}

impl View for PodView {
    type Object = core::Pod;

    fn of(pod: core::Pod) -> Self {
        let mut meta = Meta::of(&pod.metadata);
        let cost = mem::take(&mut meta.annotations).remove(DELETION_COST);
        let target = placement::target_node(&pod.spec).map(Box::from);
        let (node, wanted_node) = match pod.spec.node_name.is_empty() {
            true => (None, target),
            false => (target, None),
        };
        Self {
            labels: mem::take(&mut meta.labels).into(),
            evicted: pod.status.phase == "Failed" && pod.status.reason == "Evicted",
            released: meta.deleting && pod.metadata.deletion_grace_period_seconds == Some(0),
            meta,
            phase: phase(&pod.status.phase),
            admission: Admission::of(&pod.status),
            ready_since: pod::ready_since(&pod),
            restarts: restarts(pod.status.container_statuses.iter()),
            sidecar_restarts: restarts(sidecars(&pod)),
            deletion_cost: cost.map_or(0, |cost| deletion_cost(&cost)),
            claims: Self::claims_of(&pod.spec),
            node,
            wanted_node,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Orphans are indexed by namespace.
    fn tag(&self) -> Option<&str> {
        orphan_tag(&self.meta)
    }
}

impl PodView {
    /// Returns the volumes that are claims: the names of volume and claim.
    pub fn claims_of(spec: &core::PodSpec) -> Box<[(Box<str>, Box<str>)]> {
        let claim = |volume: &core::Volume| {
            let claim = volume.volume_source.persistent_volume_claim.as_ref()?;
            Some((
                volume.name.as_str().into(),
                claim.claim_name.as_str().into(),
            ))
        };
        spec.volumes.iter().filter_map(claim).collect()
    }

    /// Returns the node that it is bound to, or else the one that its affinity names.
    pub fn target_node(&self) -> Option<&str> {
        self.node.as_deref().or(self.wanted_node.as_deref())
    }

    /// Returns whether it has not ended and is not being deleted.
    pub fn is_active(&self) -> bool {
        !self.phase.has_ended() && !self.meta.deleting
    }

    /// Returns whether it is being deleted and has not ended.
    pub fn is_terminating(&self) -> bool {
        !self.phase.has_ended() && self.meta.deleting
    }

    /// Returns the time until it is available: zero if it is, `None` if it is not ready.
    pub fn available_in(&self, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
        pod::available_in(self.ready_since, min_ready_seconds, now)
    }
}

fn phase(phase: &str) -> Phase {
    match phase {
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Running" => Phase::Running,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}

/// Parses a cost as upstream does: a plus sign, leading zeros and anything but a number of 32 bits give zero.
fn deletion_cost(cost: &str) -> i32 {
    let valid = cost == "0" || cost.starts_with(|first: char| matches!(first, '-' | '1'..='9'));
    valid
        .then(|| cost.parse().ok())
        .flatten()
        .unwrap_or_default()
}

/// Returns the statuses of sidecars: init containers that are always restarted.
pub fn sidecars(pod: &core::Pod) -> impl Iterator<Item = &core::ContainerStatus> {
    let of_sidecar = move |status: &&core::ContainerStatus| {
        let mut containers = pod.spec.init_containers.iter();
        containers.any(|container| container.name == status.name && pod::is_sidecar(container))
    };
    let statuses = pod.status.init_container_statuses.iter();
    statuses.filter(of_sidecar)
}

fn restarts<'a>(statuses: impl Iterator<Item = &'a core::ContainerStatus>) -> i32 {
    let restarts = statuses.map(|container| container.restart_count);
    restarts.max().unwrap_or_default()
}

/// Returns the number of Pods in the type of the status fields.
pub fn count<P>(pods: impl Iterator<Item = P>) -> i32 {
    saturate(pods.count())
}

/// Converts a number of Pods to the type of the status fields.
pub fn saturate(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::meta::OwnerReference;

    use super::*;

    #[test]
    fn only_orphans_are_indexed_by_namespace() {
        let mut pod = core::Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("default".into(), "web".into());
        let orphan = PodView::of(pod.clone());
        assert_eq!(
            (orphan.tag(), &*orphan.meta().key.name),
            (Some("default"), "web")
        );
        pod.metadata.owner_references.push(OwnerReference {
            controller: Some(true),
            ..Default::default()
        });
        assert_eq!(PodView::of(pod).tag(), None);
    }

    /// Checks F32.
    #[test]
    fn a_deletion_cost_is_read_as_upstream_reads_it() {
        let costs = ["0", "-0", "5", "-5", "-08", "2147483647", "-2147483648"];
        let read = [0, 0, 5, -5, -8, i32::MAX, i32::MIN];
        assert_eq!(costs.map(deletion_cost), read);
        let invalid = [
            "",
            "+5",
            "08",
            "00",
            "1e3",
            "5 ",
            "-",
            "2147483648",
            "-2147483649",
        ];
        assert_eq!(invalid.map(deletion_cost), [0; 9]);
    }
}
