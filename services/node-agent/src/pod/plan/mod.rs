//! Plans the next actions for one Pod. Pure: a function of the [`World`] alone.
//!
//! ```text
//! no sandbox ─▶ admit ─▶ sandbox ─▶ init containers, one by one ─▶ containers ─▶ (deleted) stop ─▶ remove ─▶ final delete
//!                                  ▲      │ ended              ▲   │ ended
//!                                  └──────┘ restart policy, backoff └───┘
//! ```
//! A plan holds only the actions that are possible now, in order. They are followed by another observation and plan.

#![warn(clippy::arithmetic_side_effects)]

mod action;
mod resize;
mod start;
mod stop;

use std::net::Ipv4Addr;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_model::pod::{is_sidecar, is_terminal};
use setpoint_proto::core::Container;
use setpoint_runtime::{ContainerId, Sandbox};

pub use self::action::{Action, KillReason};
use self::start::{has_failed_to_start, start_once};
use self::stop::{STALE_GRACE, is_stopping_by, remove_stale, stop};
use crate::pod::ephemeral;
use crate::pod::health::{Health, PostStart, ProbeKind};
use crate::pod::restart::RestartPolicy;
use crate::pod::volumes::{INTERVAL, account};
use crate::pod::world::{AssignedPod, Runs, World, at_least_one_second};

/// Requeue delay of a Pod with a resize that does not fit, as in the kubelet. Pods that leave room wake it sooner.
const RESIZE_RETRY: Duration = Duration::from_secs(180);
/// Maximum requeue delay of a Pod with a deadline, because the wall clock may be adjusted.
const MAX_DEADLINE_RECHECK: Duration = Duration::from_secs(3600);

/// Plans the next actions for one Pod, and when to reconcile it again if nothing changes.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let because = match world.pod {
        Some(_) => "another Pod has this name",
        None => "the Pod is gone",
    };
    for stale in world.stale_sandboxes() {
        remove_stale(&mut plan, world, stale, because);
    }
    // A Pod starts only once the sandboxes of its predecessor are removed.
    match &world.pod {
        Some(pod) if world.stale_sandboxes().next().is_none() => pod.plan(world, &mut plan),
        _ => {}
    }
    plan
}

impl AssignedPod {
    fn plan(&self, world: &World, plan: &mut Plan<Action>) {
        if self.is_deleting() {
            return self.terminate(world, plan);
        }
        if is_terminal(&self.object) {
            let alive = world.sandbox().into_iter().flat_map(Sandbox::alive);
            return alive
                .for_each(|left| stop(plan, world, left, STALE_GRACE, "the Pod has ended"));
        }
        let Ok(admitted) = self.admission else {
            return;
        };
        if let Some(ending) = &world.ending {
            let grace = self.ending_grace(ending, world.now);
            return self.stop_all(world, grace, "the node ends the Pod", plan);
        }
        match self.active_left(world.now) {
            Some(Duration::ZERO) => return self.stop_for_deadline(world, plan),
            Some(left) => plan.look_again(left.min(MAX_DEADLINE_RECHECK)),
            None => {}
        }
        if let Some(ended) = self.ended_at(world) {
            let grace = self.grace_since(ended, world.now);
            return self.stop_all(world, grace, "the Pod has ended", plan);
        }
        let Some(ip) = admitted else {
            return plan.step(Action::Admit, "the Pod fits on the node");
        };
        match self.resize.as_ref().map(|resize| &resize.verdict) {
            Some(Ok(())) => return plan.step(Action::Allocate, "the resize fits on the node"),
            Some(Err(_)) => plan.look_again(RESIZE_RETRY),
            None => {}
        }
        match world.sandbox() {
            None => plan.step(Action::RunSandbox { ip }, "the Pod has no sandbox"),
            Some(sandbox) if !sandbox.ready => self.recreate_sandbox(world, sandbox, ip, plan),
            Some(sandbox) if stops_outdated(world, sandbox, plan) => {}
            Some(_) => {
                self.update_volumes(world, plan);
                let (first, last): (Vec<_>, Vec<_>) = ephemeral::containers(&self.object.spec)
                    .partition(|ephemeral| !has_failed_to_start(world, ephemeral));
                first.iter().for_each(|new| start_once(plan, world, new));
                match self.initialized(world) {
                    true => self.run(world, plan),
                    false => self.initialize(world, plan),
                }
                // A container that cannot be started or resized ends a round, and must not keep the others from
                // running.
                last.iter()
                    .for_each(|failed| start_once(plan, world, failed));
                self.resize_containers(world, plan);
            }
        }
    }

    /// Lets the files of volumes follow the objects that they come from, and the hosts file the addresses of the
    /// cluster.
    fn update_volumes(&self, world: &World, plan: &mut Plan<Action>) {
        let has_account = self.runs == Runs::Commands && account::has_files(&self.object);
        if !self.mounts && !has_account {
            return;
        }
        let age = |at| world.instant.saturating_duration_since(at);
        let age = world.volumes_checked.map_or(INTERVAL, age);
        match INTERVAL.saturating_sub(age) {
            Duration::ZERO => plan.step(
                Action::UpdateVolumes,
                "its files may be older than the objects that they come from",
            ),
            rest => plan.look_again(rest),
        }
    }

    /// Stops all containers of a Pod whose deadline is exceeded.
    fn stop_for_deadline(&self, world: &World, plan: &mut Plan<Action>) {
        let deadline = self.active_deadline().unwrap_or(world.now);
        let grace = self.grace_since(deadline, world.now);
        self.stop_all(world, grace, "the deadline of the Pod is exceeded", plan);
    }

    /// Replaces a lost sandbox: stops the containers that still run in it, then creates it again if a container is to
    /// be restarted.
    fn recreate_sandbox(
        &self,
        world: &World,
        sandbox: &Sandbox,
        ip: Ipv4Addr,
        plan: &mut Plan<Action>,
    ) {
        let because = "the sandbox is lost";
        let grace = self.termination_grace();
        let mut alive = sandbox.alive().peekable();
        if alive.peek().is_some() {
            return alive.for_each(|container| stop(plan, world, container, grace, because));
        }
        let spec = &self.object.spec;
        let failed = |container: &Container| {
            self.is_over(world, container) && !self.is_init_complete(world, container)
        };
        let mut containers = spec.containers.iter();
        let starts = containers.any(|container| !self.is_over(world, container));
        if starts && !spec.init_containers.iter().any(failed) {
            plan.step(Action::RunSandbox { ip }, because);
        }
    }

    fn initialize(&self, world: &World, plan: &mut Plan<Action>) {
        let spec = &self.object.spec;
        let mut waiting = spec
            .init_containers
            .iter()
            .filter(|container| !self.is_init_complete(world, container));
        for sidecar in spec.init_containers.iter().filter(|init| is_sidecar(init)) {
            self.supervise(world, sidecar, plan);
        }
        let Some(container) = waiting.next() else {
            return;
        };
        self.start_if_due(world, container, plan);
    }

    fn run(&self, world: &World, plan: &mut Plan<Action>) {
        let spec = &self.object.spec;
        let sidecars = spec.init_containers.iter().filter(|init| is_sidecar(init));
        for container in sidecars.chain(&spec.containers) {
            self.supervise(world, container, plan);
        }
        let sidecars = spec.init_containers.iter().filter(|init| is_sidecar(init));
        for container in sidecars.chain(&spec.containers) {
            let begins = self.start_if_due(world, container, plan);
            // Containers start one after the other, each when the postStart hook of the one before has ended.
            let hook = container
                .lifecycle
                .as_ref()
                .and_then(|own| own.post_start.as_ref());
            let running = world.running(&container.name);
            let runs_hook = running.is_some_and(|running| {
                world.post_starts.get(&running.id) == Some(&PostStart::Running)
            });
            if runs_hook || begins && hook.is_some() && self.runs.program_of(container) {
                return;
            }
        }
    }

    /// Begins the probes of a running container, or kills it if its postStart hook or a probe has failed.
    fn supervise(&self, world: &World, container: &Container, plan: &mut Plan<Action>) {
        let Some(running) = world.running(&container.name) else {
            return;
        };
        if self.is_unprobed(world, container) {
            return plan.step(
                Action::Probe(running.id.clone()),
                "the container runs and has probes",
            );
        }
        let Some((reason, because)) = failure(world, &running.id) else {
            return;
        };
        let grace = self.kill_grace(container, reason);
        if is_stopping_by(&running.state, world, grace) {
            return;
        }
        let policy = RestartPolicy::of(&self.object.spec, container);
        let (id, restarts) = (running.id.clone(), policy != RestartPolicy::Never);
        plan.step(
            Action::Kill {
                id,
                grace,
                reason,
                restarts,
            },
            because,
        );
    }

    /// Returns the grace period of a container that is killed, which its probe may override.
    fn kill_grace(&self, container: &Container, reason: KillReason) -> Duration {
        let kind = match reason {
            KillReason::PostStart | KillReason::Resize => return self.termination_grace(),
            KillReason::Liveness => ProbeKind::Liveness,
            KillReason::Startup => ProbeKind::Startup,
        };
        let probe = kind.of(container);
        let own = probe.and_then(|probe| probe.termination_grace_period_seconds);
        own.map_or_else(|| self.termination_grace(), at_least_one_second)
    }

    fn terminate(&self, world: &World, plan: &mut Plan<Action>) {
        let sandbox = world.sandbox();
        if sandbox.is_some_and(|sandbox| sandbox.alive().next().is_some()) {
            let own = world.ending.as_ref();
            let own = own.map_or(Duration::MAX, |ending| self.ending_grace(ending, world.now));
            let grace = self.grace(world.now).min(own);
            return self.stop_all(world, grace, "the Pod is being deleted", plan);
        }
        let has_finalizers = !self.object.metadata.finalizers.is_empty();
        let deleted =
            has_finalizers && self.object.metadata.deletion_grace_period_seconds == Some(0);
        // Watchers must see the final status before the object is gone.
        if !is_terminal(&self.object) {
            plan.step(Action::UpdateStatus, "the Pod has stopped");
        }
        if let Some(sandbox) = sandbox {
            plan.step(
                Action::RemoveSandbox(sandbox.config.uid.clone()),
                "the Pod has stopped",
            );
        }
        if !deleted {
            plan.step(Action::Delete, "the Pod has stopped");
        }
    }
}

/// Kills the containers that are to be restarted because a rule restarts all of the Pod, without a grace period.
/// Returns whether there are any; until they have ended, none is started.
fn stops_outdated(world: &World, sandbox: &Sandbox, plan: &mut Plan<Action>) -> bool {
    let mut alive = sandbox
        .alive()
        .filter(|container| world.is_outdated(container))
        .peekable();
    let any = alive.peek().is_some();
    let because = "a rule restarts all containers of the Pod";
    alive.for_each(|container| stop(plan, world, container, Duration::ZERO, because));
    any
}

/// Returns why a running container is to be killed.
fn failure(world: &World, id: &ContainerId) -> Option<(KillReason, &'static str)> {
    let results = world.probes.get(id).copied().unwrap_or_default();
    if world.post_starts.get(id) == Some(&PostStart::Failed) {
        Some((KillReason::PostStart, "its postStart hook has failed"))
    } else if results.liveness == Health::Failing {
        Some((KillReason::Liveness, "its liveness probe fails"))
    } else if results.startup == Health::Failing {
        Some((KillReason::Startup, "its startup probe has failed"))
    } else {
        None
    }
}
