//! What holds up a HorizontalPodAutoscaler, as its conditions and metrics report it. Pure.

use setpoint_model::condition::{self, FALSE, TRUE};
use setpoint_proto::autoscaling_v2::{HorizontalPodAutoscaler, MetricSpec, MetricStatus};
use setpoint_proto::setpoint::Wait;

use crate::waits::wait;

/// The conditions that report that replicas are not what the metrics ask for, and their statuses that do.
const UNMET: [(&str, &str); 3] = [
    ("AbleToScale", FALSE),
    ("ScalingActive", FALSE),
    ("ScalingLimited", TRUE),
];

/// Reasons of the condition `AbleToScale` while a window has not passed.
const STABILIZED: [&str; 2] = ["ScaleUpStabilized", "ScaleDownStabilized"];

/// Returns what an autoscaler that is not being deleted waits for.
pub(super) fn waits(autoscaler: &HorizontalPodAutoscaler) -> Vec<Wait> {
    let conditions = &autoscaler.status.conditions;
    if conditions.is_empty() {
        let message = "no controller has written a status yet";
        return vec![wait("NoStatus", message)];
    }
    let unmet = UNMET.iter().filter_map(|(kind, status)| {
        let condition = condition::get(conditions, kind)?;
        let holds_up = condition.status == *status || STABILIZED.contains(&&*condition.reason);
        holds_up.then(|| wait(&condition.reason, condition.message.as_str()))
    });
    let mut waits: Vec<_> = unmet.collect();
    if waits.is_empty() {
        waits.extend(deviations(autoscaler));
    }
    waits
}

/// Returns the utilizations that are not at their target although the size is right for them.
fn deviations(autoscaler: &HorizontalPodAutoscaler) -> impl Iterator<Item = Wait> {
    let (metrics, status) = (&autoscaler.spec.metrics, &autoscaler.status);
    let settled = status.current_replicas == status.desired_replicas;
    let metrics = metrics.iter().zip(&status.current_metrics);
    let metrics = metrics.filter(move |_| settled);
    metrics.filter_map(|(metric, current)| {
        let (name, target, current) = utilization(metric, current)?;
        let message = format!(
            "{name} is at {current} % of its request, its target is {target} %: within the tolerance, or no whole number of Pods is \
             nearer, or Pods lack metrics"
        );
        (current != target).then(|| wait("NoOtherSize", message))
    })
}

/// Returns the name, the target and the value of a utilization.
fn utilization<'a>(metric: &'a MetricSpec, current: &MetricStatus) -> Option<(&'a str, i32, i32)> {
    if let (Some(metric), Some(current)) = (&metric.resource, &current.resource) {
        let target = metric.target.average_utilization?;
        return Some((&metric.name, target, current.current.average_utilization?));
    }
    let (metric, current) = (&metric.container_resource, &current.container_resource);
    let (metric, current) = (metric.as_ref()?, current.as_ref()?);
    let target = metric.target.average_utilization?;
    Some((&metric.name, target, current.current.average_utilization?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(conditions: &Value, usage: i32) -> Vec<String> {
        let target = json!({"type": "Utilization", "averageUtilization": 70});
        let current = json!({"averageUtilization": usage});
        let autoscaler = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "spec": {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]},
            "status": {
                "currentReplicas": 3, "desiredReplicas": 3, "conditions": conditions,
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]},
        });
        let autoscaler = serde_json::from_value(autoscaler).unwrap();
        waits(&autoscaler)
            .into_iter()
            .map(|wait| wait.reason)
            .collect()
    }

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": "text"})
    }

    #[test]
    fn an_autoscaler_waits_for_what_its_conditions_report() {
        let able = condition("AbleToScale", "True", "ReadyForNewScale");
        let active = condition("ScalingActive", "True", "ValidMetricFound");
        let within = condition("ScalingLimited", "False", "DesiredWithinRange");
        let none: [&str; 0] = [];
        assert_eq!(found(&json!([able, active, within]), 70), none);
        assert_eq!(found(&json!([able, active, within]), 75), ["NoOtherSize"]);
        assert_eq!(found(&json!([]), 70), ["NoStatus"]);
        let stabilized = condition("AbleToScale", "True", "ScaleDownStabilized");
        let limited = condition("ScalingLimited", "True", "TooFewReplicas");
        let expected = ["ScaleDownStabilized", "TooFewReplicas"];
        assert_eq!(found(&json!([stabilized, active, limited]), 75), expected);
        let missing = condition("ScalingActive", "False", "FailedGetResourceMetric");
        assert_eq!(
            found(&json!([able, missing, within]), 75),
            ["FailedGetResourceMetric"]
        );
    }
}
