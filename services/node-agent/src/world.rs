//! A snapshot of everything that the plan and the status of one Pod depend on.

#![warn(clippy::arithmetic_side_effects)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_model::pod as model;
use setpoint_model::time::seconds_after;
use setpoint_proto::core::{Container, ContainerStatus, Pod};
use setpoint_proto::meta::Quantity;
use setpoint_runtime::{self as runtime, ContainerId, Sandbox, State};

use crate::admission::AdmitResult;
use crate::ending::Ending;
use crate::ephemeral;
use crate::hooks::PostStart;
use crate::probe::{Health, ProbeResults, has_probe};
use crate::resize::Resize;
use crate::restart::{self, Ended, is_sidecar};
use crate::status::status;

/// The API's default for `terminationGracePeriodSeconds`.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The exit code that is reported for a container whose end was not observed.
pub const LOST_EXIT_CODE: i32 = 137;

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

/// A Pod that is bound to a node of this agent.
#[derive(Clone, Debug)]
pub struct AssignedPod {
    /// The Pod as last read from the gateway, with the resources that its node has allocated.
    pub object: Pod,
    /// The resize that its node has not allocated.
    pub resize: Option<Resize>,
    /// Internal IP of the node.
    pub host_ip: String,
    /// Allocatable resources of the node, by resource name.
    pub allocatable: Arc<BTreeMap<String, Quantity>>,
    /// Whether the node has admitted the Pod, can admit it, or rejects it.
    pub admission: AdmitResult,
    /// Name of the runtime: the scheme of container ids.
    pub runtime: &'static str,
    /// The kind of containers that the runtime runs.
    pub runs: Runs,
    /// Whether the runtime mounts volumes.
    pub mounts: bool,
}

/// The kind of containers that a runtime runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Images.
    Images,
    /// Commands; a placeholder in place of a container without one.
    Commands,
    /// Nothing.
    Nothing,
}

impl Runs {
    /// Returns what a runtime runs.
    pub const fn of<R: runtime::Runtime>() -> Self {
        match (R::RUNS_IMAGES, R::RUNS_COMMANDS) {
            (true, _) => Self::Images,
            (false, true) => Self::Commands,
            (false, false) => Self::Nothing,
        }
    }

    /// Returns whether the program of a container runs, so that its probes and hooks have an effect.
    pub fn program_of(self, container: &Container) -> bool {
        match self {
            Self::Images => true,
            Self::Commands => !container.command.is_empty(),
            Self::Nothing => false,
        }
    }
}

/// The reason and the message of a container's `waiting` state.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingReason {
    /// A CamelCase reason, such as `ErrImagePull`.
    pub reason: Cow<'static, str>,
    /// Human-readable details.
    pub message: String,
}

impl WaitingReason {
    /// Returns the reason of a container whose configuration cannot be resolved.
    pub fn config(message: String) -> Self {
        let reason = "CreateContainerConfigError".into();
        Self { reason, message }
    }

    /// Returns the reason of a container that the engine refuses to create or start.
    pub fn refused(message: String) -> Self {
        let reason = "CreateContainerError".into();
        Self { reason, message }
    }
}

/// The attempts at one container so far.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptHistory {
    /// Number of the next attempt.
    pub next: u32,
    /// The newest attempt.
    pub last: LastAttempt,
}

/// State of the newest attempt at a container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LastAttempt {
    /// There was no attempt.
    Never,
    /// Requested, but its process does not run yet.
    Starting,
    /// Its process runs.
    Running,
    /// Its process has ended.
    Ended(Ended),
}

impl World {
    /// Returns whether the Pod has reached its target state: ready, terminal, or gone. Until it has, container state
    /// changes are attributed to the request that started the Pod.
    pub fn has_converged(&self) -> bool {
        let Some(bound) = &self.pod else {
            return self.sandboxes.is_empty();
        };
        let mut pod = Pod {
            metadata: bound.object.metadata.clone(),
            status: bound.object.status.clone(),
            ..Pod::default()
        };
        if let Some(status) = status(self) {
            pod.status = status;
        }
        let ending = pod.metadata.deletion_timestamp.is_some();
        !ending && (model::is_ready(&pod) || model::is_terminal(&pod))
    }

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

    /// Returns how many times all containers of the Pod have been restarted, or are to be: an exit that a rule answers in
    /// this way ends the round of its attempt.
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

impl LastAttempt {
    fn of(container: &runtime::Container) -> Self {
        match &container.state {
            State::Starting => Self::Starting,
            State::Running { .. } => Self::Running,
            State::Exited(exit) => Self::Ended(Ended {
                code: exit.code,
                started: exit.started,
                finished: exit.finished,
                observed: exit.observed,
                backoff: container.backoff,
            }),
        }
    }

    fn reported(status: &ContainerStatus, now: Timestamp) -> Self {
        let terminated = [&status.state, &status.last_state]
            .into_iter()
            .find_map(|state| state.terminated.as_ref())
            .filter(|_| status.state.running.is_none());
        let time = |time: &setpoint_proto::meta::Time| time.timestamp().unwrap_or(now);
        Self::Ended(Ended {
            code: terminated.map_or(LOST_EXIT_CODE, |end| end.exit_code),
            started: terminated.map_or(now, |end| time(&end.started_at)),
            finished: terminated.map_or(now, |end| time(&end.finished_at)),
            observed: None,
            backoff: Duration::ZERO,
        })
    }
}

impl AssignedPod {
    /// Returns the address of a Pod in the network of its node; `None` if it has one of its own.
    pub fn shared_ip(&self) -> Option<Ipv4Addr> {
        let shares = self.object.spec.host_network && self.runs != Runs::Images;
        self.host_ip.parse().ok().filter(|_| shares)
    }

    /// Returns whether the main containers may start: all init containers have completed in the current sandbox, or a
    /// main container was started before.
    pub fn initialized(&self, world: &World) -> bool {
        let spec = &self.object.spec;
        let begun =
            |container: &Container| world.current_attempt(&container.name) != LastAttempt::Never;
        let complete = |container: &Container| self.is_init_complete(world, container);
        spec.containers.iter().any(begun)
            || spec.init_containers.iter().all(complete)
            || self.has_finished(world)
    }

    /// Returns whether all containers have ended and none will be restarted.
    fn has_finished(&self, world: &World) -> bool {
        let mut containers = self.object.spec.containers.iter();
        containers.all(|container| self.is_over(world, container))
    }

    /// Returns whether a container has ended and will not be restarted.
    pub fn is_over(&self, world: &World, container: &Container) -> bool {
        match world.history(&container.name).last {
            LastAttempt::Ended(ended) => !self.restarts(world, container, &ended),
            _ => false,
        }
    }

    /// Returns whether a container that has ended is restarted.
    pub fn restarts(&self, world: &World, container: &Container, ended: &Ended) -> bool {
        restart::restarts(&self.object.spec, container, ended.code)
            || self.is_stopped_for_resize(world, container)
            || world.outdated(&container.name).is_some()
    }

    /// Returns when the Pod ended by itself: its main containers have ended and none is restarted, or an init container
    /// has failed for good. `None` if it goes on.
    pub fn ended_at(&self, world: &World) -> Option<Timestamp> {
        let spec = &self.object.spec;
        let end = |container: &Container| match world.history(&container.name).last {
            LastAttempt::Ended(ended) => Some(ended),
            _ => None,
        };
        if self.has_finished(world) {
            return spec
                .containers
                .iter()
                .filter_map(end)
                .map(|end| end.finished)
                .max();
        }
        if self.initialized(world) {
            return None;
        }
        let failed = |container: &Container| {
            end(container).filter(|end| end.code != 0 && !self.restarts(world, container, end))
        };
        let failed = spec.init_containers.iter().find_map(failed);
        failed.map(|end| end.finished)
    }

    /// Returns whether an init container has completed in the current sandbox. A sidecar counts as completed while it
    /// runs.
    pub fn is_init_complete(&self, world: &World, container: &Container) -> bool {
        match world.current_attempt(&container.name) {
            LastAttempt::Running => is_sidecar(container) && self.has_started(world, container),
            LastAttempt::Ended(ended) => ended.code == 0 && !is_sidecar(container),
            LastAttempt::Never | LastAttempt::Starting => false,
        }
    }

    /// Returns whether a container runs, its postStart hook has succeeded, and its startup probe has passed.
    pub fn has_started(&self, world: &World, container: &Container) -> bool {
        world.running(&container.name).is_some_and(|running| {
            let results = world.probes.get(&running.id);
            let passed = results.map_or(Health::Unknown, |results| results.startup);
            let waits = container.startup_probe.is_some() && self.runs.program_of(container);
            !world.post_starts.contains_key(&running.id) && (!waits || passed == Health::Passing)
        })
    }

    /// Returns whether a container has started and its readiness probe passes.
    pub fn is_container_ready(&self, world: &World, container: &Container) -> bool {
        let results = world
            .running(&container.name)
            .and_then(|running| world.probes.get(&running.id));
        let passed = results.map_or(Health::Unknown, |results| results.readiness);
        let asked = container.readiness_probe.is_some() && self.runs.program_of(container);
        self.has_started(world, container) && (!asked || passed == Health::Passing)
    }

    /// Returns whether the probes of a running container are to begin.
    pub fn is_unprobed(&self, world: &World, container: &Container) -> bool {
        let running = world.running(&container.name);
        has_probe(container)
            && self.runs.program_of(container)
            && running.is_some_and(|running| {
                !world.post_starts.contains_key(&running.id)
                    && !world.probes.contains_key(&running.id)
            })
    }

    /// Returns the spec of a container of any kind.
    pub fn container(&self, name: &str) -> Option<Cow<'_, Container>> {
        let spec = &self.object.spec;
        let mut all = spec.init_containers.iter().chain(&spec.containers);
        let found = all.find(|container| container.name == name);
        let ephemeral = || ephemeral::named(spec, name).map(ephemeral::container);
        found
            .map(Cow::Borrowed)
            .or_else(|| ephemeral().map(Cow::Owned))
    }

    /// Returns what is left of `activeDeadlineSeconds`, zero if it is exceeded. `None` without a deadline, or before a
    /// start time was reported.
    pub fn active_left(&self, now: Timestamp) -> Option<Duration> {
        let left = self.active_deadline()?.duration_since(now);
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Returns the time at which `activeDeadlineSeconds` is exceeded.
    pub fn active_deadline(&self) -> Option<Timestamp> {
        let seconds = self.object.spec.active_deadline_seconds?;
        let started = self.object.status.start_time?.timestamp()?;
        Some(seconds_after(started, seconds))
    }

    /// Returns whether `activeDeadlineSeconds` is exceeded.
    pub fn is_past_deadline(&self, now: Timestamp) -> bool {
        self.active_left(now).is_some_and(|left| left.is_zero())
    }

    /// Returns whether its containers are to stop for good: the Pod is being deleted, its node ends it, or its deadline is
    /// exceeded.
    pub fn is_ending(&self, world: &World) -> bool {
        self.is_deleting() || world.ending.is_some() || self.is_past_deadline(world.now)
    }

    /// Returns the grace period for stopping containers other than by a deletion of the Pod.
    pub fn termination_grace(&self) -> Duration {
        let grace = self.object.spec.termination_grace_period_seconds;
        grace.map_or(DEFAULT_GRACE, at_least_one_second)
    }

    /// Returns whether the Pod is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Returns what is left of the deletion's grace period.
    ///
    /// `deletionTimestamp` has whole seconds. One second is added, so that rounding never shortens the grace period.
    pub fn grace(&self, now: Timestamp) -> Duration {
        let meta = &self.object.metadata;
        let promised = meta.deletion_grace_period_seconds.unwrap_or_default();
        let promised = at_least_one_second(promised);
        let deadline = meta
            .deletion_timestamp
            .as_ref()
            .and_then(|time| time.timestamp());
        let left = deadline.map_or(promised, |deadline| {
            let left = Duration::try_from(deadline.duration_since(now));
            left.map_or(Duration::ZERO, |left| {
                left.saturating_add(Duration::from_secs(1))
            })
        });
        left.min(promised)
    }
}

/// Returns a grace period as the kubelet applies it: less than one second counts as one second.
pub fn at_least_one_second(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().max(1))
}
