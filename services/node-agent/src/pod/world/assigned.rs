//! A Pod that is bound to a node of this agent, and the state of its containers in a [`World`].

#![warn(clippy::arithmetic_side_effects)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_model::pod::is_sidecar;
use setpoint_proto::core::{Container, Pod};
use setpoint_proto::meta::Quantity;
use setpoint_runtime::Runtime;
use setpoint_runtime::cri::Cri;

use super::{LastAttempt, World};
use crate::pod::demand::Resize;
use crate::pod::ephemeral;
use crate::pod::health::{Health, has_probe};
use crate::pod::rejection::AdmitResult;
use crate::pod::restart::{self, Ended};

/// A Pod that is bound to a node of this agent.
#[derive(Clone, Debug)]
pub struct AssignedPod {
    /// The Pod as last read from the gateway, with the resources that its node has allocated.
    pub object: Pod,
    /// Whether it is static: from a manifest of its node. It names no object of the API.
    pub is_static: bool,
    /// The resize that its node has not allocated.
    pub resize: Option<Resize>,
    /// Internal IP of the node.
    pub host_ip: String,
    /// Allocatable resources of the node, by resource name.
    pub allocatable: Arc<BTreeMap<String, Quantity>>,
    /// Whether the node has admitted the Pod, can admit it, or rejects it.
    pub admission: AdmitResult,
    /// Name of the runtime.
    pub runtime: &'static str,
    /// The scheme of container ids: the name of the runtime, or of the software that serves the CRI.
    pub scheme: String,
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
    pub const fn of<R: Runtime>() -> Self {
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

impl AssignedPod {
    /// Returns the address of a Pod in the network of its node; `None` if it has one of its own.
    pub fn shared_ip(&self) -> Option<Ipv4Addr> {
        let can_share = self.runs != Runs::Images || self.runtime == Cri::NAME;
        let shares = self.object.spec.host_network && can_share;
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

    /// Returns whether its containers are to stop for good: the Pod is being deleted, its node ends it, or its deadline
    /// is exceeded.
    pub fn is_ending(&self, world: &World) -> bool {
        self.is_deleting() || world.ending.is_some() || self.is_past_deadline(world.now)
    }

    /// Returns whether the Pod is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }
}
