//! Plans the next actions for one Pod. Pure: a function of the [`World`] alone.
//!
//! ```text
//! no sandbox ─▶ admit ─▶ sandbox ─▶ init containers, one by one ─▶ containers ─▶ (deleted) stop ─▶ remove ─▶ final delete
//!                                  ▲      │ ended              ▲   │ ended
//!                                  └──────┘ restart policy, backoff └───┘
//! ```
//! A plan holds only the actions that are possible now, in order. They are followed by another observation and plan.

#![warn(clippy::arithmetic_side_effects)]

use std::net::Ipv4Addr;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_model::pod::is_terminal;
use setpoint_model::time::after;
use setpoint_proto::core::Container;

use crate::restart::{Ended, RestartPolicy, is_sidecar};
use crate::runtime::{self, ContainerId, Sandbox, State};
use crate::world::{AssignedPod, AttemptHistory, LastAttempt, World};

/// Grace period for containers of a Pod that is gone or terminal.
const STALE_GRACE: Duration = Duration::from_secs(1);

/// Maximum requeue delay of a Pod with a deadline, because the wall clock may be adjusted.
const MAX_DEADLINE_RECHECK: Duration = Duration::from_secs(3600);

/// One planned action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Reserve the Pod's resources and an address on the node.
    Admit,
    /// Create or recreate the Pod's sandbox.
    RunSandbox {
        /// The Pod's address.
        ip: Ipv4Addr,
    },
    /// Start a container.
    Start {
        /// Its name in the spec.
        name: String,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// Backoff to apply after this attempt ends.
        backoff: Duration,
    },
    /// Ask a container to stop.
    Stop {
        /// The attempt to stop.
        id: ContainerId,
        /// Time until it is killed.
        grace: Duration,
    },
    /// Remove an attempt that has ended.
    Remove(ContainerId),
    /// Write the final status of a Pod that is being deleted, while its sandbox still exists.
    UpdateStatus,
    /// Remove the sandbox of the Pod with this uid.
    RemoveSandbox(String),
    /// Delete the Pod's object.
    Delete,
}

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
        match self.active_left(world.now) {
            Some(Duration::ZERO) => return self.stop_all(world, plan),
            Some(left) => plan.look_again(left.min(MAX_DEADLINE_RECHECK)),
            None => {}
        }
        let Some(ip) = admitted else {
            return plan.step(Action::Admit, "the Pod fits on the node");
        };
        match world.sandbox() {
            None => plan.step(Action::RunSandbox { ip }, "the Pod has no sandbox"),
            Some(sandbox) if !sandbox.ready => self.recreate_sandbox(world, sandbox, ip, plan),
            Some(_) if self.initialized(world) => self.run(world, plan),
            Some(_) => self.initialize(world, plan),
        }
    }

    /// Stops all containers of a Pod whose deadline is exceeded.
    fn stop_all(&self, world: &World, plan: &mut Plan<Action>) {
        let grace = self.termination_grace();
        let alive = world.sandbox().into_iter().flat_map(Sandbox::alive);
        alive.for_each(|left| {
            stop(
                plan,
                world,
                left,
                grace,
                "the deadline of the Pod is exceeded",
            );
        });
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
        let over = |container: &Container, policy: RestartPolicy| match world
            .history(&container.name)
            .last
        {
            LastAttempt::Ended(ended) => !policy.restarts(ended.code),
            _ => false,
        };
        let failed = |container: &Container| {
            over(container, RestartPolicy::of_init(spec, container))
                && !self.is_init_complete(world, container)
        };
        let mut containers = spec.containers.iter();
        let starts = containers.any(|container| !over(container, RestartPolicy::of(spec)));
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
        let Some(container) = waiting.next() else {
            return;
        };
        let policy = match world.history(&container.name).last {
            // It succeeded in the lost sandbox and must run again, whatever the restart policy.
            LastAttempt::Ended(Ended { code: 0, .. }) => RestartPolicy::Always,
            _ => RestartPolicy::of_init(spec, container),
        };
        start_if_due(plan, world, container, policy);
    }

    fn run(&self, world: &World, plan: &mut Plan<Action>) {
        let spec = &self.object.spec;
        for container in spec
            .init_containers
            .iter()
            .filter(|container| is_sidecar(container))
        {
            start_if_due(plan, world, container, RestartPolicy::Always);
        }
        for container in &spec.containers {
            start_if_due(plan, world, container, RestartPolicy::of(spec));
        }
    }

    fn terminate(&self, world: &World, plan: &mut Plan<Action>) {
        let mut alive = world
            .sandbox()
            .into_iter()
            .flat_map(Sandbox::alive)
            .peekable();
        if alive.peek().is_some() {
            let grace = self.grace(world.now);
            return alive.for_each(|container| {
                stop(plan, world, container, grace, "the Pod is being deleted")
            });
        }
        let has_finalizers = !self.object.metadata.finalizers.is_empty();
        let deleted =
            has_finalizers && self.object.metadata.deletion_grace_period_seconds == Some(0);
        // Watchers must see the final status before the object is gone.
        if !is_terminal(&self.object) {
            plan.step(Action::UpdateStatus, "the Pod has stopped");
        }
        if let Some(sandbox) = world.sandbox() {
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

/// Starts a container that has not been started, or that has ended and whose backoff is over.
fn start_if_due(
    plan: &mut Plan<Action>,
    world: &World,
    container: &Container,
    policy: RestartPolicy,
) {
    let AttemptHistory { next, last } = world.history(&container.name);
    let because = match world.current_attempt(&container.name) {
        LastAttempt::Never => "the container ended in a sandbox that is lost",
        _ => "the container ended and its restart policy applies",
    };
    let (backoff, because) = match last {
        LastAttempt::Never => (Duration::ZERO, "the container was never started"),
        LastAttempt::Ended(ended) if policy.restarts(ended.code) => {
            match ended.remaining_backoff(world.now, world.instant) {
                Duration::ZERO => (ended.next_backoff(), because),
                wait => return plan.look_again(wait),
            }
        }
        _ => return,
    };
    let attempts = world
        .sandbox()
        .into_iter()
        .flat_map(|sandbox| sandbox.attempts(&container.name));
    for old in attempts.filter(|old| old.id.attempt.saturating_add(1) < next) {
        plan.step(
            Action::Remove(old.id.clone()),
            "only the last two attempts are kept",
        );
    }
    let (name, attempt) = (container.name.clone(), next);
    plan.step(
        Action::Start {
            name,
            attempt,
            backoff,
        },
        because,
    );
}

fn remove_stale(plan: &mut Plan<Action>, world: &World, sandbox: &Sandbox, because: &'static str) {
    let mut alive = sandbox.alive().peekable();
    if alive.peek().is_none() {
        plan.step(Action::RemoveSandbox(sandbox.config.uid.clone()), because);
    }
    alive.for_each(|container| stop(plan, world, container, STALE_GRACE, because));
}

/// Stops a container, unless an earlier stop has a deadline at least as early.
fn stop(
    plan: &mut Plan<Action>,
    world: &World,
    container: &runtime::Container,
    grace: Duration,
    because: &'static str,
) {
    let id = container.id.clone();
    match container.state {
        State::Running {
            stopping: Some(sooner),
            ..
        } if sooner <= after(world.now, grace) => {}
        _ => plan.step(Action::Stop { id, grace }, because),
    }
}
