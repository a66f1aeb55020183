//! The conditions of a Node. Pure.

use std::borrow::Cow;

use jiff::Timestamp;
use setpoint_model::condition;
use setpoint_proto::core::{NodeCondition, NodeStatus};
use setpoint_runtime::{Kind, Obstacle};

use super::{Node, NodeState, Pressure};

/// Type of the condition that is true if the configured container engine is available.
const ENGINE: &str = "ContainerEngine";
/// Type of the condition that is true if Pods cannot be connected to a network, which other software may set as well.
const NETWORK: &str = "NetworkUnavailable";
/// The reasons of that condition if the agent has set it.
const UNAVAILABLE: &str = "NetworkPluginNotReady";
const AVAILABLE: &str = "NetworkPluginReady";

/// Returns the conditions of a node. Those of other types are kept.
pub fn of(
    node: &Node,
    state: &NodeState,
    reported: &NodeStatus,
    now: Timestamp,
) -> Vec<NodeCondition> {
    let mut conditions = reported.conditions.clone();
    let all = [
        pressure(state, Pressure::Memory),
        pressure(state, Pressure::Disk),
        (
            "PIDPressure",
            condition::FALSE,
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available".into(),
        ),
        ready(state),
    ];
    let engine = engine(node);
    if engine.is_none() {
        conditions.retain(|condition| condition.r#type != ENGINE);
    }
    let network = network(node, state, reported);
    for (kind, status, reason, message) in all.into_iter().chain(engine).chain(network) {
        let stated = NodeCondition {
            r#type: kind.to_owned(),
            status: status.to_owned(),
            last_transition_time: now.into(),
            reason: reason.to_owned(),
            message: message.into_owned(),
            ..NodeCondition::default()
        };
        condition::set(&mut conditions, stated);
        let own = conditions
            .iter_mut()
            .filter(|condition| condition.r#type == kind);
        own.for_each(|condition| condition.last_heartbeat_time = now.into());
    }
    conditions
}

/// The type, status, reason and message of a condition.
type Stated<'a> = (&'static str, &'static str, &'static str, Cow<'a, str>);

fn pressure(state: &NodeState, pressure: Pressure) -> Stated<'static> {
    let (reason, message) = match (pressure, state.pressures.contains(&pressure)) {
        (Pressure::Memory, false) => (
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (Pressure::Memory, true) => (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        ),
        (Pressure::Disk, false) => ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        (Pressure::Disk, true) => ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    };
    let status = match state.pressures.contains(&pressure) {
        true => condition::TRUE,
        false => condition::FALSE,
    };
    (pressure.condition(), status, reason, message.into())
}

fn ready(state: &NodeState) -> Stated<'_> {
    let obstacle = match (state.shutting_down, &state.obstacle) {
        (true, _) => Some("node is shutting down".into()),
        (false, obstacle) => obstacle.as_ref().map(|why| why.to_string().into()),
    };
    let (status, reason, message) = match obstacle {
        None => (
            condition::TRUE,
            "KubeletReady",
            "kubelet is posting ready status".into(),
        ),
        Some(obstacle) => (condition::FALSE, "KubeletNotReady", obstacle),
    };
    ("Ready", status, reason, message)
}

/// Returns the condition of the network, if the runtime says that it is not ready, or has said so before. What others
/// have set stays.
fn network<'a>(node: &Node, state: &'a NodeState, reported: &NodeStatus) -> Option<Stated<'a>> {
    if node.runtime != Kind::Cri {
        return None;
    }
    if let Some(Obstacle::Network(why)) = &state.obstacle {
        return Some((NETWORK, condition::TRUE, UNAVAILABLE, why.into()));
    }
    let mut conditions = reported.conditions.iter();
    let own = conditions.find(|one| one.r#type == NETWORK && one.reason == UNAVAILABLE);
    let ready = "the network plugin of the container runtime is ready";
    own.filter(|_| state.obstacle.is_none())
        .map(|_| (NETWORK, condition::FALSE, AVAILABLE, ready.into()))
}

/// Returns the condition of the container engine, if one was configured.
fn engine(node: &Node) -> Option<Stated<'_>> {
    match (node.runtime, node.fallback.as_str()) {
        (Kind::Docker, _) => Some((
            ENGINE,
            condition::TRUE,
            "EngineAnswers",
            "containers run in a Docker engine".into(),
        )),
        (_, "") => None,
        (_, why) => Some((ENGINE, condition::FALSE, "RunsProcesses", why.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Machine, Settings};

    fn condition(runtime: Kind, obstacle: Option<Obstacle>, reported: &NodeStatus) -> String {
        let settings = Settings {
            runtime,
            ..Settings::default()
        };
        let machine = Machine {
            memory: "1Gi".into(),
            cpu: "2".into(),
            ..Machine::default()
        };
        let nodes = Node::all(&settings, "node", &machine).unwrap();
        let state = NodeState {
            obstacle,
            ..NodeState::default()
        };
        let conditions = of(&nodes[0], &state, reported, Timestamp::UNIX_EPOCH);
        let found = conditions.into_iter().find(|one| one.r#type == NETWORK);
        found.map_or_else(String::new, |one| {
            [one.status, one.reason, one.message].join(" ")
        })
    }

    fn reported(status: &str, reason: &str) -> NodeStatus {
        let condition = NodeCondition {
            r#type: NETWORK.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "m".to_owned(),
            ..NodeCondition::default()
        };
        NodeStatus {
            conditions: vec![condition],
            ..NodeStatus::default()
        }
    }

    #[test]
    fn a_network_that_is_not_ready_is_a_condition_and_what_others_say_of_it_stays() {
        let nothing = NodeStatus::default();
        let (network, down) = (
            Obstacle::Network("no configuration".to_owned()),
            Obstacle::Down("refused".to_owned()),
        );
        let own = reported("True", UNAVAILABLE);
        let ready = "False NetworkPluginReady the network plugin of the container runtime is ready";
        for (runtime, obstacle, before, expected) in [
            (Kind::Cri, None, &nothing, ""),
            (
                Kind::Cri,
                Some(network.clone()),
                &nothing,
                "True NetworkPluginNotReady no configuration",
            ),
            (Kind::Cri, None, &own, ready),
            // Nothing is known of the network.
            (Kind::Cri, Some(down), &own, "True NetworkPluginNotReady m"),
            (
                Kind::Cri,
                None,
                &reported("False", "CalicoIsUp"),
                "False CalicoIsUp m",
            ),
            (Kind::Process, Some(network), &nothing, ""),
        ] {
            assert_eq!(condition(runtime, obstacle, before), expected);
        }
    }
}
