//! What a Pod waits for. Pure.

use serde_json::Value;
use setpoint_proto::setpoint::{Observer, Round, Subject, Wait};

/// A text field by its path.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A list by its path.
pub(super) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The condition of this type.
pub(super) fn condition<'a>(object: &'a Value, r#type: &str) -> Option<&'a Value> {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.find(|condition| condition["type"] == r#type)
}

/// Is it Ready, or has it ended as it should?
pub(super) fn is_ready(pod: &Value) -> bool {
    let ready = condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
    ready || text(pod, "/status/phase") == "Succeeded"
}

/// The newest round that looked at the object itself.
pub(super) fn newest<'a>(
    observers: &'a [Observer],
    service: &str,
    subject: &Subject,
) -> Option<&'a Round> {
    let observers = observers.iter().filter(|one| one.service == service);
    let rounds = observers.flat_map(|one| &one.rounds);
    let own =
        rounds.filter(|round| round.touched.is_none() && round.subject.as_ref() == Some(subject));
    own.max_by_key(|round| round.last_ns)
}

/// What a Pod waits for, as it and those who work on it tell.
pub(super) fn waits(pod: &Value, subject: &Subject, observers: &[Observer]) -> Vec<Wait> {
    let gates = list(pod, "/spec/schedulingGates");
    if !gates.is_empty() {
        let names: Vec<_> = gates.iter().map(|gate| text(gate, "/name")).collect();
        return vec![wait(
            "SchedulingGated",
            format!("its scheduling gates: {}", names.join(", ")),
        )];
    }
    if text(pod, "/spec/nodeName").is_empty() {
        return vec![unscheduled(pod, newest(observers, "scheduler", subject))];
    }
    let agent = newest(observers, "node-agent", subject);
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let statuses = statuses.into_iter().flat_map(|path| list(pod, path));
    let waits: Vec<_> = statuses
        .filter_map(|status| container(status, agent))
        .collect();
    match waits.is_empty() && !is_ready(pod) {
        true => vec![unready(pod)],
        false => waits,
    }
}

fn wait(reason: &str, message: String) -> Wait {
    Wait {
        reason: reason.to_owned(),
        message,
        ..Wait::default()
    }
}

fn unscheduled(pod: &Value, round: Option<&Round>) -> Wait {
    let refused = round.filter(|round| !round.verdicts.is_empty() && round.outcome == "waiting");
    let condition = condition(pod, "PodScheduled");
    let told = condition.map(|condition| text(condition, "/message").to_owned());
    match (refused, told) {
        (Some(round), told) => Wait {
            reason: "Unschedulable".to_owned(),
            message: match round.steps.first() {
                Some(step) => step.because.clone(),
                None => told.unwrap_or_default(),
            },
            until_ns: round.next_ns,
            verdicts: round.verdicts.clone(),
            more_verdicts: round.more_verdicts,
            ..Wait::default()
        },
        (None, Some(message)) => wait("Unschedulable", message),
        (None, None) => wait(
            "Unscheduled",
            "the scheduler has not looked at it yet".to_owned(),
        ),
    }
}

/// A container that waits, and until when; one that runs but is not ready.
fn container(status: &Value, agent: Option<&Round>) -> Option<Wait> {
    let name = text(status, "/name");
    let reason = text(status, "/state/waiting/reason");
    if !reason.is_empty() {
        let until = agent.filter(|_| reason == "CrashLoopBackOff");
        return Some(Wait {
            until_ns: until.map_or(0, |round| round.next_ns),
            ..wait(reason, format!("container {name}: {}", why(status)))
        });
    }
    let running = status.pointer("/state/running").is_some();
    let unready = status["ready"] == false && running;
    unready.then(|| {
        wait(
            "NotReady",
            format!("container {name} runs, but is not ready"),
        )
    })
}

fn why(status: &Value) -> String {
    let message = text(status, "/state/waiting/message");
    let code = status.pointer("/lastState/terminated/exitCode");
    match (
        code.and_then(Value::as_i64),
        status["restartCount"].as_i64(),
    ) {
        (Some(code), Some(restarts)) => {
            format!("{message}; it ended with exit code {code} and was restarted {restarts} times")
        }
        _ => message.to_owned(),
    }
}

fn unready(pod: &Value) -> Wait {
    let node = text(pod, "/spec/nodeName");
    let reason = text(pod, "/status/reason");
    if text(pod, "/status/phase") == "Failed" {
        return wait(
            "Failed",
            format!("{reason} {}", text(pod, "/status/message")),
        );
    }
    wait("NotStarted", format!("node {node} has not started it yet"))
}
