//! Events about resizes.

use serde_json::json;
use setpoint_model::condition;
use setpoint_model::pod::{RESIZE_IN_PROGRESS, RESIZE_PENDING};
use setpoint_proto::core::{Container, PodCondition, PodSpec, PodStatus};

use super::Events;
use crate::pod::world::AssignedPod;

impl Events {
    /// Records the Events that belong to a new status of a Pod that is resized.
    pub fn resized(&self, pod: &AssignedPod, status: &PodStatus) {
        let (before, now) = (&pod.object.status.conditions, &status.conditions);
        if let Some(pending) = news(before, now, RESIZE_PENDING) {
            let mut spec = pod.object.spec.clone();
            if let Some(resize) = &pod.resize {
                resize.demand.allocation.apply(&mut spec);
            }
            let reason = format!("Resize{}", pending.reason);
            self.warning(&pod.object, None, &reason, || {
                summary(&pending.reason, pod, &spec, &pending.message)
            });
        }
        let spec = &pod.object.spec;
        let in_progress = news(before, now, RESIZE_IN_PROGRESS);
        match in_progress {
            Some(begun) if begun.reason.is_empty() => {
                self.normal(&pod.object, None, "ResizeStarted", || {
                    summary("started", pod, spec, "")
                });
            }
            Some(failed) => self.warning(&pod.object, None, "ResizeError", || {
                summary("error", pod, spec, &failed.message)
            }),
            None => {}
        }
        let has =
            |conditions: &[PodCondition]| condition::get(conditions, RESIZE_IN_PROGRESS).is_some();
        if has(before) && !has(now) {
            self.normal(&pod.object, None, "ResizeCompleted", || {
                summary("completed", pod, spec, "")
            });
        }
    }
}

/// Returns a condition that is new, or that says something else than before.
fn news<'c>(
    before: &[PodCondition],
    now: &'c [PodCondition],
    kind: &str,
) -> Option<&'c PodCondition> {
    let is_same = |old: &PodCondition, new: &PodCondition| {
        (&old.reason, &old.message, old.observed_generation)
            == (&new.reason, &new.message, new.observed_generation)
    };
    let old = condition::get(before, kind);
    let new = condition::get(now, kind);
    new.filter(|new| !old.is_some_and(|old| is_same(old, new)))
}

/// Returns the message of an Event of a resize: the resources of all containers as JSON.
fn summary(what: &str, pod: &AssignedPod, spec: &PodSpec, error: &str) -> String {
    let list = |containers: &[Container]| -> Vec<_> {
        let all = containers.iter();
        all.map(|container| json!({ "name": container.name, "resources": container.resources }))
            .collect()
    };
    let mut summary = json!({ "generation": pod.object.metadata.generation });
    for (field, containers) in [
        ("initContainers", &spec.init_containers),
        ("containers", &spec.containers),
    ] {
        if !containers.is_empty() {
            summary[field] = list(containers).into();
        }
    }
    if !error.is_empty() {
        summary["error"] = error.into();
    }
    format!("Pod resize {what}: {summary}")
}
