//! The computed table cells of Pods.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::pod::is_sidecar;
use setpoint_proto::core::{ContainerState, ContainerStatus, Pod};

use crate::age;

/// Returns the cell of a computed column.
pub(super) fn cell(pod: &Pod, column: &str, now: Timestamp) -> Option<Value> {
    let summary = || Summary::of(pod);
    Some(match column {
        "Ready" => summary().ready_of_total().into(),
        "Status" => summary().reason.into(),
        "Restarts" => summary().restarts(now).into(),
        "Readiness Gates" => readiness_gates(pod).into(),
        _ => return None,
    })
}

/// A summary of the containers of a Pod. Its `reason` is the status that kubectl shows in place of the phase.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i32,
    last_restart: Option<Timestamp>,
}

impl Summary {
    fn of(pod: &Pod) -> Self {
        let sidecars = pod.spec.init_containers.iter().filter(|c| is_sidecar(c));
        let mut summary = Self {
            reason: pod_reason(pod),
            ready: 0,
            total: pod.spec.containers.len() + sidecars.count(),
            restarts: 0,
            last_restart: None,
        };
        if !summary.count_init_containers(pod) || has_condition(pod, "Initialized") {
            summary.count_containers(pod);
        }
        summary.set_terminating(pod);
        summary
    }

    /// Counts the init containers up to the first one that has not completed. Returns whether there is one.
    fn count_init_containers(&mut self, pod: &Pod) -> bool {
        for (index, status) in pod.status.init_container_statuses.iter().enumerate() {
            self.count_restarts(status);
            let sidecar = sidecar_named(pod, &status.name);
            let exited_well = (status.state.terminated.as_ref()).is_some_and(|t| t.exit_code == 0);
            if exited_well {
                continue;
            }
            if sidecar && status.started == Some(true) {
                self.ready += usize::from(status.ready);
                continue;
            }
            let total = pod.spec.init_containers.len();
            self.reason = match stop_reason(&status.state) {
                Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
                _ => format!("Init:{index}/{total}"),
            };
            return true;
        }
        false
    }

    /// Counts the containers. The reason is that of the last one that is not running. Restarts of finished init
    /// containers are not counted.
    fn count_containers(&mut self, pod: &Pod) {
        (self.restarts, self.last_restart) = (0, None);
        for status in &pod.status.init_container_statuses {
            if sidecar_named(pod, &status.name) {
                self.count_restarts(status);
            }
        }
        let mut any_runs = false;
        for status in pod.status.container_statuses.iter().rev() {
            self.count_restarts(status);
            match stop_reason(&status.state) {
                Some(reason) => self.reason = reason,
                None if status.ready && status.state.running.is_some() => {
                    any_runs = true;
                    self.ready += 1;
                }
                None => {}
            }
        }
        if self.reason == "Completed" && any_runs {
            let ready = has_condition(pod, "Ready");
            self.reason = if ready { "Running" } else { "NotReady" }.into();
        }
    }

    fn set_terminating(&mut self, pod: &Pod) {
        if pod.metadata.deletion_timestamp.is_none() {
            return;
        }
        if pod.status.reason == "NodeLost" {
            self.reason = "Unknown".into();
        } else if !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
            self.reason = "Terminating".into();
        }
    }

    fn count_restarts(&mut self, status: &ContainerStatus) {
        self.restarts += status.restart_count;
        let finished = status.last_state.terminated.as_ref();
        let finished = finished.and_then(|terminated| terminated.finished_at.timestamp());
        self.last_restart = self.last_restart.max(finished);
    }

    fn ready_of_total(&self) -> String {
        format!("{}/{}", self.ready, self.total)
    }

    fn restarts(&self, now: Timestamp) -> String {
        match self.last_restart {
            Some(moment) if self.restarts > 0 => {
                format!("{} ({} ago)", self.restarts, age::since(Some(moment), now))
            }
            _ => self.restarts.to_string(),
        }
    }
}

/// Returns the reason in the status of the Pod itself, or else its phase.
fn pod_reason(pod: &Pod) -> String {
    let mut conditions = pod.status.conditions.iter();
    if conditions.any(|c| c.r#type == "PodScheduled" && c.reason == "SchedulingGated") {
        return "SchedulingGated".into();
    }
    match pod.status.reason.as_str() {
        "" => pod.status.phase.clone(),
        reason => reason.to_owned(),
    }
}

/// Returns the reason why a container is waiting or terminated, if there is one.
fn stop_reason(state: &ContainerState) -> Option<String> {
    if let Some(waiting) = &state.waiting {
        return (!waiting.reason.is_empty()).then(|| waiting.reason.clone());
    }
    let terminated = state.terminated.as_ref()?;
    Some(match (terminated.reason.as_str(), terminated.signal) {
        ("", 0) => format!("ExitCode:{}", terminated.exit_code),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

fn sidecar_named(pod: &Pod, name: &str) -> bool {
    let mut init = pod.spec.init_containers.iter();
    init.any(|container| container.name == name && is_sidecar(container))
}

fn has_condition(pod: &Pod, name: &str) -> bool {
    let mut conditions = pod.status.conditions.iter();
    conditions.any(|condition| condition.r#type == name && condition.status == "True")
}

fn readiness_gates(pod: &Pod) -> String {
    let gates = &pod.spec.readiness_gates;
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates
        .iter()
        .filter(|gate| has_condition(pod, &gate.condition_type));
    format!("{}/{}", open.count(), gates.len())
}
