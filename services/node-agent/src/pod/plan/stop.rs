//! Plans stops: of one container, of a Pod's containers in order, and of the containers that an earlier Pod has left.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::Plan;
use setpoint_model::pod::is_sidecar;
use setpoint_model::time::after;
use setpoint_runtime::{self as runtime, Sandbox, State};

use super::Action;
use crate::pod::ending::Ending;
use crate::pod::world::MIN_GRACE;
use crate::pod::world::{AssignedPod, World};

/// Grace period for containers of a Pod that is gone or terminal.
pub(super) const STALE_GRACE: Duration = Duration::from_secs(1);

impl AssignedPod {
    /// Stops all containers of the Pod. Sidecars stop after the others, in the reverse order of their start; their
    /// preStop hooks begin at once, as in the kubelet. A sidecar whose turn has not come when `grace` is over stops
    /// with the rest.
    pub(super) fn stop_all(
        &self,
        world: &World,
        grace: Duration,
        because: &'static str,
        plan: &mut Plan<Action>,
    ) {
        let alive = || world.sandbox().into_iter().flat_map(Sandbox::alive);
        let rank = |container: &runtime::Container| self.stop_rank(&container.id.name);
        let turn = alive().map(rank).max();
        for container in alive() {
            let rank = rank(container);
            if Some(rank) == turn || grace.is_zero() {
                let grace = match rank {
                    MAIN => grace,
                    _ => grace.max(MIN_GRACE),
                };
                stop(plan, world, container, grace, because);
            } else {
                plan.look_again(grace);
                self.hold(world, container, grace, plan);
            }
        }
    }

    /// Returns the place of a container in the order of stops: the highest is first.
    fn stop_rank(&self, name: &str) -> usize {
        let mut init = self.object.spec.init_containers.iter();
        init.position(|init| init.name == name && is_sidecar(init))
            .unwrap_or(MAIN)
    }

    /// Begins the preStop hook of a container that is not to stop yet.
    fn hold(
        &self,
        world: &World,
        container: &runtime::Container,
        grace: Duration,
        plan: &mut Plan<Action>,
    ) {
        let id = &container.id;
        let runs = matches!(container.state, State::Running { stopping: None, .. });
        if !runs || world.held.contains(id) {
            return;
        }
        let spec = self.container(&id.name);
        let spec = spec.filter(|spec| self.runs.program_of(spec));
        let lifecycle = spec.as_ref().and_then(|spec| spec.lifecycle.as_ref());
        if lifecycle.is_some_and(|lifecycle| lifecycle.pre_stop.is_some()) {
            let id = id.clone();
            plan.step(
                Action::PreStop { id, grace },
                "the Pod stops, and the sidecar after its other containers",
            );
        }
    }

    /// Returns what is left of the grace period of a Pod that its node ends.
    pub(super) fn ending_grace(&self, ending: &Ending, now: Timestamp) -> Duration {
        grace_left(
            self.termination_grace().min(ending.grace),
            ending.since,
            now,
        )
    }

    /// Returns what is left of the grace period that began at a time.
    pub(super) fn grace_since(&self, since: Timestamp, now: Timestamp) -> Duration {
        grace_left(self.termination_grace(), since, now)
    }
}

fn grace_left(promised: Duration, since: Timestamp, now: Timestamp) -> Duration {
    let left = after(since, promised).duration_since(now);
    Duration::try_from(left).unwrap_or_default().min(promised)
}

/// The rank of a container that is no sidecar.
const MAIN: usize = usize::MAX;

/// Removes the sandbox of another Pod once its containers have stopped.
pub(super) fn remove_stale(
    plan: &mut Plan<Action>,
    world: &World,
    sandbox: &Sandbox,
    because: &'static str,
) {
    let mut alive = sandbox.alive().peekable();
    if alive.peek().is_none() {
        plan.step(Action::RemoveSandbox(sandbox.config.uid.clone()), because);
    }
    alive.for_each(|container| stop(plan, world, container, STALE_GRACE, because));
}

/// Stops a container, unless an earlier stop has a deadline at least as early.
pub(super) fn stop(
    plan: &mut Plan<Action>,
    world: &World,
    container: &runtime::Container,
    grace: Duration,
    because: &'static str,
) {
    if !is_stopping_by(&container.state, world, grace) {
        let id = container.id.clone();
        plan.step(Action::Stop { id, grace }, because);
    }
}

/// Returns whether a container is being stopped, with a deadline no later than that of a stop that began now.
pub(super) fn is_stopping_by(state: &State, world: &World, grace: Duration) -> bool {
    let by = after(world.now, grace);
    matches!(state, State::Running { stopping: Some(sooner), .. } if *sooner <= by)
}
