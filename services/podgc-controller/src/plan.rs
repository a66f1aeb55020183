//! Plan: ends the Pod, then deletes it.

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_workload::PodView;

const ORPHANED: &str = "its node is gone";

/// Everything that the decision about one Pod depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Pod.
    pub pod: Arc<PodView>,
    /// Its node.
    pub node: NodeState,
    /// Whether it is one of the oldest of too many ended Pods.
    pub surplus: bool,
    /// The time for which its node must be missing.
    pub quarantine: Duration,
}

/// The node of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The Pod is not bound.
    Unbound,
    /// It exists.
    Exists,
    /// It exists, and its operator has declared it dead.
    OutOfService,
    /// It has been missing for this time.
    Missing(Duration),
}

/// A write of the Pod, which must still have its uid; if it is `orphaned`, its node must still be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write that the Pod has failed: no agent will do it.
    MarkFailed {
        /// Whether it is because its node is gone.
        orphaned: bool,
    },
    /// Delete it without a grace period: no agent waits for its containers.
    Delete {
        /// Whether it is because its node is gone.
        orphaned: bool,
    },
}

/// Plans for one Pod.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let pod = &world.pod;
    let deleting = pod.meta.deleting;
    let because = match world.node {
        // Only finalizers hold it.
        _ if pod.released => return plan,
        NodeState::Missing(time) if time >= world.quarantine => ORPHANED,
        NodeState::Unbound if deleting => "it is being deleted and was never bound to a node",
        NodeState::OutOfService if deleting => {
            "it is being deleted, and its node is out of service"
        }
        _ if world.surplus => "more Pods have ended than are kept",
        NodeState::Missing(time) => {
            plan.look_again(world.quarantine.saturating_sub(time));
            return plan;
        }
        _ => return plan,
    };
    let orphaned = because == ORPHANED;
    let action = match pod.phase.has_ended() {
        false => Action::MarkFailed { orphaned },
        true => Action::Delete { orphaned },
    };
    plan.step(action, because);
    plan
}
