//! A snapshot of everything that the plan and the status of one Pod depend on.

#![warn(clippy::arithmetic_side_effects)]

mod assigned;
mod attempts;
mod grace;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use jiff::Timestamp;
use setpoint_proto::core::{Container, ContainerStatus};
use setpoint_runtime::{self as runtime, ContainerId, Sandbox, State};

pub use self::assigned::{AssignedPod, Runs};
pub use self::attempts::{AttemptHistory, LOST_EXIT_CODE, LastAttempt};
pub use self::grace::{MIN_GRACE, at_least_one_second};
pub use self::waiting::WaitingReason;
use crate::pod::ending::Ending;
use crate::pod::health::{PostStart, ProbeResults};
use crate::pod::restart;

/// The desired and the actual state of one Pod at one moment.
#[derive(Clone, Debug)]
pub struct World {
    /// Wall-clock time of the snapshot.
    pub now: Timestamp,
    /// Monotonic time of the snapshot.
    pub instant: Instant,
    /// The Pod as the gateway has it; `None` if it is gone or bound to another node.
    pub pod: Option<AssignedPod>,
    /// The sandboxes of all Pods with this namespace and name, whatever their uid.
    pub sandboxes: Vec<Sandbox>,
    /// Waiting reasons of containers that could not be started in this reconcile, by container name.
    pub waiting_reasons: BTreeMap<String, WaitingReason>,
    /// The error of a container that could not be resized in this reconcile.
    pub resize_error: Option<String>,
    /// Results of the probes of the Pod's containers, of those whose probes have begun.
    pub probes: BTreeMap<ContainerId, ProbeResults>,
    /// The postStart hooks of the Pod's containers that run or have failed.
    pub post_starts: BTreeMap<ContainerId, PostStart>,
    /// The containers whose preStop hook has begun, and that are not to stop yet.
    pub held: BTreeSet<ContainerId>,
    /// The end that the node has decided on for the Pod.
    pub ending: Option<Ending>,
    /// Monotonic time at which the Pod's volumes were last compared with their objects.
    pub volumes_checked: Option<Instant>,
}

impl World {
    /// Returns the sandbox of this Pod.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        let uid = &self.pod.as_ref()?.object.metadata.uid;
        self.sandboxes
            .iter()
            .find(|sandbox| sandbox.config.uid == *uid)
    }

    /// Returns the sandboxes of other Pods with the same name that still exist.
    pub fn stale_sandboxes(&self) -> impl Iterator<Item = &Sandbox> {
        let uid = self
            .pod
            .as_ref()
            .map(|pod| pod.object.metadata.uid.as_str());
        self.sandboxes
            .iter()
            .filter(move |sandbox| Some(sandbox.config.uid.as_str()) != uid)
    }

    /// Returns the attempts at a container: from the runtime if it knows the container, else from the last reported
    /// status.
    ///
    /// The runtime may have lost a container that was reported, for example with the machine's disk. Such a container
    /// counts as lost if it was running.
    pub fn history(&self, name: &str) -> AttemptHistory {
        let known = self.sandbox().and_then(|sandbox| sandbox.latest(name));
        match (known, self.reported(name)) {
            (Some(container), _) => AttemptHistory {
                next: container.id.attempt.saturating_add(1),
                last: LastAttempt::of(container),
            },
            (None, Some(status)) if !status.container_id.is_empty() => AttemptHistory {
                next: u32::try_from(status.restart_count)
                    .unwrap_or_default()
                    .saturating_add(1),
                last: LastAttempt::reported(status, self.now),
            },
            _ => AttemptHistory {
                next: 0,
                last: LastAttempt::Never,
            },
        }
    }

    /// Returns the newest attempt at a container in the current sandbox. Attempts in a lost sandbox do not count.
    pub fn current_attempt(&self, name: &str) -> LastAttempt {
        self.current(name)
            .map_or(LastAttempt::Never, LastAttempt::of)
    }

    fn current(&self, name: &str) -> Option<&runtime::Container> {
        let sandbox = self.sandbox()?;
        sandbox
            .latest(name)
            .filter(|latest| latest.sandbox == sandbox.id && !self.is_outdated(latest))
    }

    /// Returns how many times all containers of the Pod have been restarted, or are to be: an exit that a rule answers
    /// in this way ends the round of its attempt.
    pub fn round(&self) -> u32 {
        let all = self.sandbox().into_iter().flat_map(|own| &own.containers);
        let rounds = all.map(|container| match self.restarts_all(container) {
            true => container.round.saturating_add(1),
            false => container.round,
        });
        rounds.max().unwrap_or_default()
    }

    /// Returns whether a container has exited in a way that restarts all containers of the Pod.
    pub fn restarts_all(&self, container: &runtime::Container) -> bool {
        let State::Exited(exit) = &container.state else {
            return false;
        };
        let spec = self.spec_of(&container.id.name);
        spec.is_some_and(|spec| restart::restarts_all(spec, exit.code))
    }

    /// Returns whether an attempt is one of a round before the newest. Ephemeral containers are not restarted.
    pub fn is_outdated(&self, container: &runtime::Container) -> bool {
        container.round < self.round() && self.spec_of(&container.id.name).is_some()
    }

    /// Returns the newest attempt at a container if it is one of a round before the newest.
    pub fn outdated(&self, name: &str) -> Option<&runtime::Container> {
        let latest = self.sandbox()?.latest(name)?;
        self.is_outdated(latest).then_some(latest)
    }

    /// Returns the spec of a container that is not ephemeral.
    fn spec_of(&self, name: &str) -> Option<&Container> {
        let spec = &self.pod.as_ref()?.object.spec;
        let mut all = spec.init_containers.iter().chain(&spec.containers);
        all.find(|container| container.name == name)
    }

    /// Returns the running attempt at a container in the current sandbox.
    pub fn running(&self, name: &str) -> Option<&runtime::Container> {
        self.current(name)
            .filter(|latest| matches!(latest.state, State::Running { .. }))
    }

    /// Returns the last reported status of a container.
    pub fn reported(&self, name: &str) -> Option<&ContainerStatus> {
        let status = &self.pod.as_ref()?.object.status;
        let mut all = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses)
            .chain(&status.ephemeral_container_statuses);
        all.find(|status| status.name == name)
    }
}
