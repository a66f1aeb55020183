//! Plans the resizes of running containers.

use setpoint_controller::Plan;
use setpoint_model::condition;
use setpoint_model::pod::RESIZE_IN_PROGRESS;
use setpoint_runtime::State;

use super::{Action, KillReason};
use crate::pod::demand::resizable;
use crate::pod::resize::Change;
use crate::pod::world::{AssignedPod, World};

impl AssignedPod {
    /// Gives the running containers the resources that are allocated to them.
    pub(super) fn resize_containers(&self, world: &World, plan: &mut Plan<Action>) {
        let all = resizable(&self.object.spec);
        let changes = all.filter_map(|container| {
            let running = world.running(&container.name)?;
            // One that stops has the resources of its next attempt soon.
            let stays = matches!(running.state, State::Running { stopping: None, .. });
            let change = Change::between(running.resources.as_ref()?, container)?;
            stays.then_some((&running.id, change))
        });
        let mut changes = changes.peekable();
        let (wanted, own) = (self.wanted_of_pod(world), self.resources_of_pod(world));
        if changes.peek().is_none() {
            if let Some(wanted) = wanted {
                plan.step(
                    Action::ResizePod(wanted),
                    "the Pod has other limits than its node has allocated",
                );
            }
            return;
        }
        // By the time of the condition a later agent knows the containers that were stopped for the resize.
        if !condition::is_true(&self.object.status.conditions, RESIZE_IN_PROGRESS) {
            return plan.step(Action::UpdateStatus, "a resize begins");
        }
        // A container never may have more than its Pod, neither before nor after.
        let raised = wanted.zip(own).map(|(wanted, own)| own.raised_to(wanted));
        if let Some(raised) = raised.filter(|raised| Some(*raised) != own) {
            plan.step(
                Action::ResizePod(raised),
                "a container is to have more than its Pod has",
            );
        }
        for (id, change) in changes {
            let id = id.clone();
            match change {
                Change::InPlace => plan.step(
                    Action::Resize(id),
                    "the container has other resources than its node has allocated",
                ),
                Change::Restart => plan.step(
                    Action::Kill {
                        id,
                        grace: self.termination_grace(),
                        reason: KillReason::Resize,
                        restarts: true,
                    },
                    "its resize policy demands a restart",
                ),
            }
        }
    }
}
