//! What to do about a Pod next. Pure: a function of the world alone.
//!
//! ```text
//! no sandbox ─▶ sandbox ─▶ init containers, one by one ─▶ containers ─▶ (deleted) stop ─▶ remove ─▶ final delete
//!                                  ▲      │ ended              ▲   │ ended
//!                                  └──────┘ restart policy, backoff └───┘
//! ```
//! A plan holds only what can be done now, in order; the next round does the rest.

#![warn(clippy::arithmetic_side_effects)]

use std::net::Ipv4Addr;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_model::pod::is_terminal;
use setpoint_model::time::after;
use setpoint_proto::core::Container;

use crate::restart::{Ended, Policy, is_sidecar};
use crate::runtime::{self, ContainerId, Sandbox, State};
use crate::world::{Bound, Last, Past, World};

/// How long the containers of a Pod that nobody knows any more get to stop.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);

/// The longest time between two looks at a Pod that has a deadline: clocks may be set.
const LONGEST_LOOK: Duration = Duration::from_secs(3600);

/// One step on a Pod's way.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make room for its containers.
    RunSandbox {
        /// The Pod's address.
        ip: Ipv4Addr,
    },
    /// Start a container.
    Start {
        /// Its name in the spec.
        name: String,
        /// Counts restarts.
        attempt: u32,
        /// How long to rest after this attempt before the next.
        backoff: Duration,
    },
    /// Ask a container to stop.
    Stop {
        /// Which.
        id: ContainerId,
        /// How long it gets.
        grace: Duration,
    },
    /// Forget a container that ended.
    Remove(ContainerId),
    /// Report how the Pod ended, before what shows it is removed.
    Report,
    /// Forget a sandbox, by the uid of its Pod.
    RemoveSandbox(String),
    /// Remove the Pod's object.
    Delete,
}

impl Action {
    /// The name of its span.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunSandbox { .. } => "RunSandbox",
            Self::Start { .. } => "Start",
            Self::Stop { .. } => "Stop",
            Self::Remove(_) => "Remove",
            Self::Report => "Report",
            Self::RemoveSandbox(_) => "RemoveSandbox",
            Self::Delete => "Delete",
        }
    }
}

/// The next steps for one Pod, and when to look again should nothing happen.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let because = match world.pod {
        Some(_) => "another Pod has this name now",
        None => "its Pod is gone",
    };
    for stranger in world.strangers() {
        tear_down(&mut plan, world, stranger, because);
    }
    // A Pod waits until the one that had its name before is out of the way.
    match &world.pod {
        Some(pod) if world.strangers().next().is_none() => pod.plan(world, &mut plan),
        _ => {}
    }
    plan
}

impl Bound {
    fn plan(&self, world: &World, plan: &mut Plan<Action>) {
        if self.is_deleting() {
            return self.finish(world, plan);
        }
        if is_terminal(&self.object) {
            let alive = world.sandbox().into_iter().flat_map(Sandbox::alive);
            return alive
                .for_each(|left| stop(plan, world, left, ORPHAN_GRACE, "its Pod has ended"));
        }
        let Ok(ip) = self.admission else {
            return;
        };
        match self.active_left(world.now) {
            Some(Duration::ZERO) => return self.stop_all(world, plan),
            Some(left) => plan.look_again(left.min(LONGEST_LOOK)),
            None => {}
        }
        match world.sandbox() {
            None => plan.step(Action::RunSandbox { ip }, "the Pod has no sandbox"),
            Some(sandbox) if !sandbox.ready => self.rebuild(world, sandbox, ip, plan),
            Some(_) if self.initialized(world) => self.run(world, plan),
            Some(_) => self.initialize(world, plan),
        }
    }

    /// Stops what runs of a Pod that is past its deadline.
    fn stop_all(&self, world: &World, plan: &mut Plan<Action>) {
        let grace = self.termination_grace();
        let alive = world.sandbox().into_iter().flat_map(Sandbox::alive);
        alive.for_each(|left| {
            stop(
                plan,
                world,
                left,
                grace,
                "the Pod was active for longer than its deadline",
            );
        });
    }

    /// What the containers shared is lost: they stop, and those that start again do so in a sandbox made anew.
    fn rebuild(&self, world: &World, sandbox: &Sandbox, ip: Ipv4Addr, plan: &mut Plan<Action>) {
        let because = "the sandbox is lost";
        let grace = self.termination_grace();
        let mut alive = sandbox.alive().peekable();
        if alive.peek().is_some() {
            return alive.for_each(|container| stop(plan, world, container, grace, because));
        }
        let spec = &self.object.spec;
        let over = |container: &Container, policy: Policy| match world.past(&container.name).last {
            Last::Ended(ended) => !policy.restarts(ended.code),
            _ => false,
        };
        let failed = |container: &Container| {
            over(container, Policy::of_init(spec, container)) && !self.is_through(world, container)
        };
        let mut containers = spec.containers.iter();
        let starts = containers.any(|container| !over(container, Policy::of(spec)));
        if starts && !spec.init_containers.iter().any(failed) {
            plan.step(Action::RunSandbox { ip }, because);
        }
    }

    fn initialize(&self, world: &World, plan: &mut Plan<Action>) {
        let spec = &self.object.spec;
        let mut waiting = spec
            .init_containers
            .iter()
            .filter(|container| !self.is_through(world, container));
        let Some(container) = waiting.next() else {
            return;
        };
        let policy = match world.past(&container.name).last {
            // It did its part in a sandbox that is lost, and does it again whatever the policy.
            Last::Ended(Ended { code: 0, .. }) => Policy::Always,
            _ => Policy::of_init(spec, container),
        };
        keep_up(plan, world, container, policy);
    }

    fn run(&self, world: &World, plan: &mut Plan<Action>) {
        let spec = &self.object.spec;
        for container in spec
            .init_containers
            .iter()
            .filter(|container| is_sidecar(container))
        {
            keep_up(plan, world, container, Policy::Always);
        }
        for container in &spec.containers {
            keep_up(plan, world, container, Policy::of(spec));
        }
    }

    fn finish(&self, world: &World, plan: &mut Plan<Action>) {
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
        let stays = !self.object.metadata.finalizers.is_empty();
        let asked = stays && self.object.metadata.deletion_grace_period_seconds == Some(0);
        // Whoever watches the Pod sees how it ended in the last version of its object.
        if !is_terminal(&self.object) {
            plan.step(Action::Report, "the Pod has stopped");
        }
        if let Some(sandbox) = world.sandbox() {
            plan.step(
                Action::RemoveSandbox(sandbox.config.uid.clone()),
                "the Pod has stopped",
            );
        }
        if !asked {
            plan.step(Action::Delete, "the Pod has stopped");
        }
    }
}

/// Starts a container that should run and does not.
fn keep_up(plan: &mut Plan<Action>, world: &World, container: &Container, policy: Policy) {
    let Past { next, last } = world.past(&container.name);
    let because = match world.present(&container.name) {
        Last::Never => "the container ended in a sandbox that is lost",
        _ => "the container ended, and its policy is to restart it",
    };
    let (backoff, because) = match last {
        Last::Never => (Duration::ZERO, "the container was never started"),
        Last::Ended(ended) if policy.restarts(ended.code) => {
            match ended.wait(world.now, world.instant) {
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
            "only the last attempt is of interest",
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

fn tear_down(plan: &mut Plan<Action>, world: &World, sandbox: &Sandbox, because: &'static str) {
    let mut alive = sandbox.alive().peekable();
    if alive.peek().is_none() {
        plan.step(Action::RemoveSandbox(sandbox.config.uid.clone()), because);
    }
    alive.for_each(|container| stop(plan, world, container, ORPHAN_GRACE, because));
}

/// Asks a container to stop, unless it was asked to be as quick before.
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
