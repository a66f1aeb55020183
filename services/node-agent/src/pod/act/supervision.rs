//! Probes and lifecycle hooks of running containers.

use std::sync::Arc;
use std::time::Duration;

use setpoint_proto::core::Container;
use setpoint_runtime::{ContainerId, Runtime, State};

use super::{Error, Executor};
use crate::pod::handler::Target;
use crate::pod::health::{Health, ProbeResults};
use crate::pod::hooks;
use crate::pod::probe;
use crate::pod::world::{AssignedPod, World};

impl<R: Runtime> Executor<R> {
    /// Stops a container, after its preStop hook if it runs.
    pub(super) async fn stop(
        &self,
        world: &World,
        pod: Option<&AssignedPod>,
        id: &ContainerId,
        grace: Duration,
    ) -> Result<(), Error> {
        let hook = pod.and_then(|pod| self.pre_stop(world, pod, id));
        if let Some(run) = hook.filter(|_| !grace.is_zero())
            && self.hooks.run_pre_stop(run, grace, false, &self.events)
        {
            return Ok(());
        }
        Ok(self.runtime.stop(id, grace).await?)
    }

    /// Begins the preStop hook of a container that is to stop after others.
    pub(super) fn hold(&self, world: &World, pod: &AssignedPod, id: &ContainerId, grace: Duration) {
        if let Some(run) = self.pre_stop(world, pod, id) {
            self.hooks.run_pre_stop(run, grace, true, &self.events);
        }
    }

    fn pre_stop(
        &self,
        world: &World,
        pod: &AssignedPod,
        id: &ContainerId,
    ) -> Option<hooks::Run<R>> {
        let container = pod.container(&id.name)?;
        let handler = container.lifecycle.as_ref()?.pre_stop.clone()?;
        let running = world
            .running(&id.name)
            .is_some_and(|running| running.id == *id);
        if !running || !pod.runs.program_of(&container) {
            return None;
        }
        Some(hooks::Run {
            target: self.target(world, &container, id)?,
            handler,
            pod: Arc::new(probe::subject(&pod.object)),
        })
    }

    /// Begins the probes of a container.
    pub(super) fn probe(&self, world: &World, pod: &AssignedPod, id: &ContainerId) {
        let (Some(running), Some(container)) = (world.running(&id.name), pod.container(&id.name))
        else {
            return;
        };
        let (State::Running { since, .. }, Some(target)) =
            (&running.state, self.target(world, &container, id))
        else {
            return;
        };
        let begin = probe::Begin {
            target,
            pod: Arc::new(probe::subject(&pod.object)),
            since: *since,
            results: reported_results(world, &pod.id_of(running), &id.name),
        };
        self.probes.begin(begin, &self.events, &self.wake);
    }

    /// Returns what handlers need to know of a container.
    pub(super) fn target(
        &self,
        world: &World,
        container: &Container,
        id: &ContainerId,
    ) -> Option<Target<R>> {
        Some(Target {
            runtime: self.runtime.clone(),
            id: id.clone(),
            container: Arc::new(container.clone()),
            ip: world.sandbox()?.config.ip,
        })
    }
}

/// Returns the results of a container's probes in the last reported status: with them it stays ready while an agent
/// restarts.
fn reported_results(world: &World, container_id: &str, name: &str) -> ProbeResults {
    let reported = world.reported(name);
    let reported = reported.filter(|reported| reported.container_id == container_id);
    let passing = |yes: bool| {
        if yes {
            Health::Passing
        } else {
            Health::Unknown
        }
    };
    ProbeResults {
        liveness: Health::Passing,
        readiness: passing(reported.is_some_and(|reported| reported.ready)),
        startup: passing(reported.is_some_and(|reported| reported.started == Some(true))),
    }
}
