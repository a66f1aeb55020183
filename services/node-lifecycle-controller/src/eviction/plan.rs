//! Plan: waits, then marks the Pod, then deletes it.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_proto::core::Taint;

use super::Stay;
use crate::PodView;

/// Everything that the decision about one Pod depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Pod.
    pub pod: Arc<PodView>,
    /// The taints of its node with the effect NoExecute; none if the node is gone.
    pub taints: Vec<Taint>,
    /// The time since it was first seen on a node with such taints; `None` if it is not waiting.
    pub waited: Option<Duration>,
}

/// A step of the eviction of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the condition `DisruptionTarget`, so that its owner does not count it as a failure.
    MarkDisrupted,
    /// Delete it.
    Delete,
    /// Tell the user that it stays; nothing is written.
    Cancel,
}

impl World {
    /// Returns the time for which the Pod may stay.
    pub fn stay(&self) -> Stay {
        Stay::of(&self.pod.tolerations, &self.taints)
    }
}

/// Plans for one Pod.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.pod.meta.deleting {
        return plan;
    }
    match (world.stay(), world.waited) {
        (Stay::No, _) => {
            let because = "its node has a taint that it does not tolerate";
            plan.step(evict(world), because);
        }
        (Stay::For(limit), Some(waited)) if waited >= limit => {
            let because = "it has tolerated a taint of its node for as long as it may";
            plan.step(evict(world), because);
        }
        (Stay::For(limit), waited) => {
            plan.look_again(limit.saturating_sub(waited.unwrap_or_default()));
        }
        (Stay::Forever, Some(_)) => {
            let because = match world.taints.is_empty() {
                true => "the taints of its node are gone",
                false => "it tolerates the taints of its node",
            };
            plan.step(Action::Cancel, because);
        }
        (Stay::Forever, None) => {}
    }
    plan
}

fn evict(world: &World) -> Action {
    match world.pod.disrupted {
        false => Action::MarkDisrupted,
        true => Action::Delete,
    }
}
