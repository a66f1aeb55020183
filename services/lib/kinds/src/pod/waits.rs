//! Finds the reasons for which a Pod waits. Pure.

use setpoint_model::condition;
use setpoint_model::replicas::{NODE_AGENT, SCHEDULER};
use setpoint_proto::core::{ContainerStateWaiting, ContainerStatus, Pod};
use setpoint_proto::setpoint::{Reconcile, ReconcileOutcome, Wait};

use crate::waits::{Records, is_settled, newest, wait};

/// Returns what a Pod waits for, from its status and the last reconciles of the scheduler and the node agent.
pub(super) fn waits(pod: &Pod, records: &Records<'_>) -> Vec<Wait> {
    let last = |service| newest(records.observers, service, records.subject);
    let gates = pod.spec.scheduling_gates.iter();
    let gates: Vec<_> = gates.map(|gate| gate.name.as_str()).collect();
    if !gates.is_empty() {
        let message = format!("its scheduling gates: {}", gates.join(", "));
        return vec![wait("SchedulingGated", message)];
    }
    if pod.spec.node_name.is_empty() {
        return vec![unscheduled(pod, last(SCHEDULER))];
    }
    let agent = last(NODE_AGENT);
    let init = pod.status.init_container_statuses.iter();
    let statuses = init.chain(&pod.status.container_statuses);
    let waits: Vec<_> = statuses
        .filter_map(|status| container(status, agent))
        .collect();
    match waits.is_empty() && !is_settled(pod) {
        true => vec![unready(pod)],
        false => waits,
    }
}

fn unscheduled(pod: &Pod, reconcile: Option<&Reconcile>) -> Wait {
    let refused = reconcile.filter(|reconcile| {
        !reconcile.verdicts.is_empty() && reconcile.outcome() == ReconcileOutcome::Waiting
    });
    let condition = condition::get(&pod.status.conditions, "PodScheduled");
    let message = condition.map(|condition| condition.message.clone());
    match (refused, message) {
        (Some(reconcile), message) => Wait {
            until_ns: reconcile.next_ns,
            verdicts: reconcile.verdicts.clone(),
            more_verdicts: reconcile.more_verdicts,
            ..wait(
                "Unschedulable",
                match reconcile.steps.first() {
                    Some(step) => step.because.clone(),
                    None => message.unwrap_or_default(),
                },
            )
        },
        (None, Some(message)) => wait("Unschedulable", message),
        (None, None) => wait("Unscheduled", "the scheduler has not looked at it yet"),
    }
}

/// Returns what a container waits for, if it is waiting, or running but not ready.
fn container(status: &ContainerStatus, agent: Option<&Reconcile>) -> Option<Wait> {
    let name = &status.name;
    let waiting = status.state.waiting.as_ref();
    if let Some(waiting) = waiting.filter(|waiting| !waiting.reason.is_empty()) {
        let backoff = agent.filter(|_| waiting.reason == "CrashLoopBackOff");
        let message = format!("container {name}: {}", explain(status, waiting));
        return Some(Wait {
            until_ns: backoff.map_or(0, |reconcile| reconcile.next_ns),
            ..wait(&waiting.reason, message)
        });
    }
    let unready = status.state.running.is_some() && !status.ready;
    let message = || format!("container {name} runs, but is not ready");
    unready.then(|| wait("NotReady", message()))
}

fn explain(status: &ContainerStatus, waiting: &ContainerStateWaiting) -> String {
    let (message, restarts) = (&waiting.message, status.restart_count);
    match &status.last_state.terminated {
        Some(last) => format!(
            "{message}; it ended with exit code {} and was restarted {restarts} times",
            last.exit_code
        ),
        None => message.clone(),
    }
}

fn unready(pod: &Pod) -> Wait {
    let status = &pod.status;
    if status.phase == "Failed" {
        return wait("Failed", format!("{} {}", status.reason, status.message));
    }
    let node = &pod.spec.node_name;
    wait("NotStarted", format!("node {node} has not started it yet"))
}
