//! Plans starts: of containers that were never started or are to be restarted, and of ephemeral ones.

#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_proto::core::Container;

use super::Action;
use crate::pod::restart::Ended;
use crate::pod::world::{AssignedPod, AttemptHistory, LastAttempt, World};

impl AssignedPod {
    /// Starts a container that has not been started, or that has ended and whose backoff is over. Returns whether it
    /// does.
    pub(super) fn start_if_due(
        &self,
        world: &World,
        container: &Container,
        plan: &mut Plan<Action>,
    ) -> bool {
        let AttemptHistory { next, last } = world.history(&container.name);
        let (backoff, because) = match last {
            LastAttempt::Never => (Duration::ZERO, "the container was never started"),
            LastAttempt::Ended(ended) => {
                let Some((wait, backoff, because)) = self.restart_of(world, container, &ended)
                else {
                    return false;
                };
                if !wait.is_zero() {
                    plan.look_again(wait);
                    return false;
                }
                (backoff, because)
            }
            LastAttempt::Starting | LastAttempt::Running => return false,
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
        true
    }

    /// Returns the wait before the restart of a container that has ended, the backoff of its next attempt, and the
    /// reason. `None` if it is not restarted.
    fn restart_of(
        &self,
        world: &World,
        container: &Container,
        ended: &Ended,
    ) -> Option<(Duration, Duration, &'static str)> {
        if self.is_stopped_for_resize(world, container) {
            let because = "it was stopped to start with other resources";
            return Some((Duration::ZERO, ended.effective_backoff(), because));
        }
        // The container whose exit restarts the others has its backoff, which bounds how often that happens.
        let outdated = world.outdated(&container.name);
        if outdated.is_some_and(|outdated| !world.restarts_all(outdated)) {
            let because = "a rule restarts all containers of the Pod";
            return Some((Duration::ZERO, ended.effective_backoff(), because));
        }
        let lost = world.current_attempt(&container.name) == LastAttempt::Never;
        // An init container that succeeded in the lost sandbox must run again, whatever the restart policy.
        let reruns = ended.code == 0 && self.is_init(&container.name);
        if !reruns && !self.restarts(world, container, ended) {
            return None;
        }
        let because = match lost {
            true => "the container ended in a sandbox that is lost",
            false => "the container ended and its restart policy applies",
        };
        let wait = ended.remaining_backoff(world.now, world.instant);
        Some((wait, ended.next_backoff(), because))
    }
}

/// Returns whether an ephemeral container was reported as one that cannot be started.
pub(super) fn has_failed_to_start(world: &World, ephemeral: &Container) -> bool {
    let waiting = world
        .reported(&ephemeral.name)
        .and_then(|reported| reported.state.waiting.as_ref());
    let usual = ["ContainerCreating", "PodInitializing"];
    waiting.is_some_and(|waiting| !usual.contains(&waiting.reason.as_str()))
}

/// Starts an ephemeral container that was never started.
pub(super) fn start_once(plan: &mut Plan<Action>, world: &World, ephemeral: &Container) {
    if world.history(&ephemeral.name).last == LastAttempt::Never {
        let (name, attempt, backoff) = (ephemeral.name.clone(), 0, Duration::ZERO);
        plan.step(
            Action::Start {
                name,
                attempt,
                backoff,
            },
            "the ephemeral container was added to the Pod",
        );
    }
}
