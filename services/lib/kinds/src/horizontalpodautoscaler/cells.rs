//! The cell with the current and the wanted value of each metric.

use setpoint_proto::autoscaling_v2::{MetricSpec, MetricStatus, MetricTarget, MetricValueStatus};
use setpoint_proto::meta::Quantity;

/// The metrics that are shown; the others are counted.
const SHOWN: usize = 2;

/// Returns the current and the wanted values.
pub fn targets(specs: &[MetricSpec], statuses: &[MetricStatus]) -> String {
    if specs.is_empty() {
        return "<none>".into();
    }
    let shown = specs.iter().take(SHOWN).enumerate();
    let shown: Vec<_> = shown
        .map(|(index, spec)| metric(spec, statuses.get(index)))
        .collect();
    let shown = shown.join(", ");
    match specs.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn metric(spec: &MetricSpec, status: Option<&MetricStatus>) -> String {
    match spec.r#type.as_str() {
        "External" => {
            let source = spec.external.as_ref();
            let now = status.and_then(|status| status.external.as_ref());
            total(
                source.map(|source| &source.target),
                now.map(|now| &now.current),
            )
        }
        "Object" => {
            let source = spec.object.as_ref();
            let now = status.and_then(|status| status.object.as_ref());
            total(
                source.map(|source| &source.target),
                now.map(|now| &now.current),
            )
        }
        "Pods" => {
            let target = spec.pods.as_ref().map(|source| &source.target);
            let now = status.and_then(|status| status.pods.as_ref());
            let now = now.and_then(|now| now.current.average_value.as_ref());
            pair(now, target.and_then(|target| target.average_value.as_ref()))
        }
        "Resource" => {
            let Some(source) = &spec.resource else {
                return "<unknown type>".into();
            };
            let now = status.and_then(|status| status.resource.as_ref());
            usage(&source.name, &source.target, now.map(|now| &now.current))
        }
        "ContainerResource" => {
            let Some(source) = &spec.container_resource else {
                return "<unknown type>".into();
            };
            let now = status.and_then(|status| status.container_resource.as_ref());
            usage(&source.name, &source.target, now.map(|now| &now.current))
        }
        _ => "<unknown type>".into(),
    }
}

/// Returns the value of a metric that exists once, in total or for each Pod.
fn total(target: Option<&MetricTarget>, now: Option<&MetricValueStatus>) -> String {
    let average = target.and_then(|target| target.average_value.as_ref());
    match average {
        Some(wanted) => {
            let now = now.and_then(|now| now.average_value.as_ref());
            format!("{} (avg)", pair(now, Some(wanted)))
        }
        None => {
            let now = now.and_then(|now| now.value.as_ref());
            pair(now, target.and_then(|target| target.value.as_ref()))
        }
    }
}

fn pair(now: Option<&Quantity>, wanted: Option<&Quantity>) -> String {
    let text = |value: Option<&Quantity>| {
        value.map_or_else(|| "<unknown>".to_owned(), |value| value.string.clone())
    };
    format!("{}/{}", text(now), text(wanted))
}

/// Returns the use of a resource, as an amount or in percent of the requests.
fn usage(name: &str, target: &MetricTarget, now: Option<&MetricValueStatus>) -> String {
    if let Some(wanted) = &target.average_value {
        let now = now.and_then(|now| now.average_value.as_ref());
        return format!("{name}: {}", pair(now, Some(wanted)));
    }
    let percent = |value: Option<i32>, none: &str| {
        value.map_or_else(|| none.to_owned(), |value| format!("{value}%"))
    };
    let now = percent(now.and_then(|now| now.average_utilization), "<unknown>");
    let wanted = percent(target.average_utilization, "<auto>");
    format!("{name}: {now}/{wanted}")
}
