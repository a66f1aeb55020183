//! Plan: conditions, then taints, and the Pods that are no longer ready.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use setpoint_controller::Plan;
use setpoint_model::{Target, condition};
use setpoint_proto::core::NodeCondition;
use setpoint_proto::meta::Time;

use crate::taints::{TaintChange, is_executed, no_execute, no_schedule};
use crate::{Ready, World};

/// The conditions that only the agent knows.
const OF_AGENT: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// A write of a node or of one of its Pods.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write the conditions of a node whose agent does not answer.
    MarkUnknown(Conditions),
    /// Change its taints.
    Taint(TaintChange),
    /// Set labels under their former names.
    Label(BTreeMap<String, String>),
    /// Write that a Pod is not ready.
    MarkPodNotReady(Target),
}

/// All conditions of a node.
#[derive(Clone, PartialEq)]
pub struct Conditions(pub Vec<NodeCondition>);

/// Writes types and statuses only, since plans are printed for users.
impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.iter().map(|one| (&one.r#type, &one.status));
        f.debug_map().entries(all).finish()
    }
}

/// Plans for one node.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if let Some(unknown) = unknown(world) {
        let because = match world.node.ready() {
            Ready::Never => "its agent has never posted a status",
            _ => "neither its Lease nor its status was renewed within the grace period",
        };
        // The conditions are those that the taints follow from: the next reconcile has them.
        plan.step(Action::MarkUnknown(unknown), because);
        return plan;
    }
    taint(world, &mut plan);
    let missing = &world.node.missing_labels;
    if plan.is_empty() && !missing.is_empty() {
        let because = "selectors may use the former names of its labels";
        plan.step(Action::Label(missing.clone()), because);
    }
    for pod in &world.ready_pods {
        let because = "the agent of its node does not answer";
        plan.step(Action::MarkPodNotReady(pod.clone()), because);
    }
    plan
}

/// Returns the conditions of a node whose agent has been silent for too long; `None` if it has not, or the node has
/// them.
fn unknown(world: &World) -> Option<Conditions> {
    if !world.is_silent() {
        return None;
    }
    let mut conditions = world.node.conditions.clone();
    let mut changed = false;
    for kind in OF_AGENT {
        let (reason, message, heartbeat) = match condition::get(&conditions, kind) {
            None => (
                "NodeStatusNeverUpdated",
                "Kubelet never posted node status.",
                world.node.meta.created.map(Time::from).unwrap_or_default(),
            ),
            Some(known) if known.status == condition::UNKNOWN => continue,
            Some(known) => (
                "NodeStatusUnknown",
                "Kubelet stopped posting node status.",
                known.last_heartbeat_time,
            ),
        };
        let stated = NodeCondition {
            r#type: kind.to_owned(),
            status: condition::UNKNOWN.to_owned(),
            last_heartbeat_time: heartbeat,
            last_transition_time: world.now.into(),
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        changed |= condition::set(&mut conditions, stated);
    }
    changed.then_some(Conditions(conditions))
}

/// Plans all changes of the taints as one write.
fn taint(world: &World, plan: &mut Plan<Action>) {
    let (node, now) = (&world.node, world.now);
    let mut because = "its conditions call for other taints";
    let mut change = no_schedule(node, now);
    let mut executed = match node.ready() {
        Ready::Never => TaintChange::default(),
        _ => no_execute(node, !world.outage, now),
    };
    if wants_turn(world) {
        let wait = world.turn;
        wait.into_iter()
            .filter(|wait| !wait.is_zero())
            .for_each(|wait| plan.look_again(wait));
        if wait != Some(Duration::ZERO) {
            executed = TaintChange::default();
        }
    } else if node.ready() == Ready::Unknown && !is_executed(node) {
        // Its agent was heard since: it has the full grace period.
        executed = TaintChange::default();
    }
    if !executed.is_empty() {
        because = match node.ready() {
            Ready::Yes => "it is ready again",
            _ if executed.add.is_empty() => {
                "no node of any zone is ready: the fault may be on the way to them"
            }
            Ready::Unknown => "its agent does not answer: its Pods have to leave",
            _ => "it is not ready: its Pods have to leave",
        };
    }
    change.add.append(&mut executed.add);
    change.remove.append(&mut executed.remove);
    if !change.is_empty() {
        plan.step(Action::Taint(change), because);
    }
}

/// Returns whether a node is to be tainted NoExecute as soon as the rate of its zone allows. One that has such a taint
/// already does not wait: it is replaced at once if the condition changes.
pub fn wants_turn(world: &World) -> bool {
    let unhealthy = match world.node.ready() {
        Ready::No => true,
        Ready::Unknown => world.is_silent(),
        Ready::Yes | Ready::Never => false,
    };
    unhealthy && !world.outage && !is_executed(&world.node)
}
