//! Validation of the metrics, each of one source.

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::autoscaling_v2::{
    ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget, ObjectMetricSource,
    PodsMetricSource,
};
use setpoint_proto::meta::Quantity;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::{label_selector, podspec};

const TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

/// Returns whether the metrics exist without Pods.
pub fn allow_zero(metrics: &[MetricSpec]) -> bool {
    let mut types = metrics.iter().map(|metric| metric.r#type.as_str());
    types.any(|of| ["Object", "External"].contains(&of))
}

/// Validates the metrics.
pub fn validate(metrics: &[MetricSpec], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, metric) in metrics.iter().enumerate() {
        validate_metric(metric, &path.index(index), errors);
    }
}

fn validate_metric(metric: &MetricSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (of, at) = (metric.r#type.as_str(), path.field("type"));
    if of.is_empty() {
        errors.required(&at, "must specify a metric source type");
    }
    // Upstream reports an unknown type twice.
    errors.one_of(&at, of, TYPES);
    errors.one_of(&at, of, TYPES);
    let sources = [
        ("Object", "object", metric.object.is_some()),
        ("External", "external", metric.external.is_some()),
        ("Pods", "pods", metric.pods.is_some()),
        ("Resource", "resource", metric.resource.is_some()),
        (
            "ContainerResource",
            "containerResource",
            metric.container_resource.is_some(),
        ),
    ];
    validate_first(metric, path, errors);
    let present = sources.iter().filter(|(.., is_set)| *is_set).count();
    for (source, field, is_set) in sources {
        if source == of && !is_set {
            let detail = "must populate information for the given metric source";
            errors.required(&path.field(field), detail);
        }
        if source != of && is_set && present != 1 {
            let detail = "must populate the given metric source only";
            errors.forbidden(&path.field(field), detail);
        }
    }
}

/// Validates the first of the sources.
fn validate_first(metric: &MetricSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(source) = &metric.object {
        validate_object(source, &path.field("object"), errors);
    } else if let Some(source) = &metric.external {
        validate_external(source, &path.field("external"), errors);
    } else if let Some(source) = &metric.pods {
        validate_pods(source, &path.field("pods"), errors);
    } else if let Some(source) = &metric.resource {
        let path = path.field("resource");
        if source.name.is_empty() {
            errors.required(&path.field("name"), "must specify a resource name");
        }
        validate_usage(&source.target, &path.field("target"), errors);
    } else if let Some(source) = &metric.container_resource {
        let path = path.field("containerResource");
        match source.name.as_str() {
            "" => errors.required(&path.field("name"), "must specify a resource name"),
            name => podspec::validate_container_resource(name, &path.field("name"), errors),
        }
        match source.container.as_str() {
            "" => errors.required(&path.field("container"), "must specify a container"),
            name => errors.check(&path.field("container"), name, names::validate_dns_label),
        }
        validate_usage(&source.target, &path.field("target"), errors);
    }
}

fn validate_object(source: &ObjectMetricSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (object, at) = (&source.described_object, path.field("describedObject"));
    super::validate_names(object, &at, errors);
    super::validate_version(&object.api_version, true, &at, errors);
    validate_identifier(&source.metric, &path.field("metric"), errors);
    let (target, path) = (&source.target, path.field("target"));
    validate_target(target, &path, errors);
    if target.value.is_none() && target.average_value.is_none() {
        let detail = "must set either a target value or averageValue";
        errors.required(&path.field("averageValue"), detail);
    }
}

fn validate_external(
    source: &ExternalMetricSource,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_identifier(&source.metric, &path.field("metric"), errors);
    let (target, path) = (&source.target, path.field("target"));
    validate_target(target, &path, errors);
    match (&target.value, &target.average_value) {
        (None, None) => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.required(&path.field("averageValue"), detail);
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&path.field("value"), detail);
        }
        _ => {}
    }
}

fn validate_pods(source: &PodsMetricSource, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_identifier(&source.metric, &path.field("metric"), errors);
    let path = path.field("target");
    validate_target(&source.target, &path, errors);
    if source.target.average_value.is_none() {
        let detail = "must specify a positive target averageValue";
        errors.required(&path.field("averageValue"), detail);
    }
}

/// Validates the target of the use of a resource.
fn validate_usage(target: &MetricTarget, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_target(target, path, errors);
    match (target.average_utilization, &target.average_value) {
        (None, None) => {
            let detail = "must set either a target raw value or a target utilization";
            errors.required(&path.field("averageUtilization"), detail);
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.forbidden(&path.field("averageValue"), detail);
        }
        _ => {}
    }
}

fn validate_target(target: &MetricTarget, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (of, at) = (target.r#type.as_str(), path.field("type"));
    if of.is_empty() {
        errors.required(&at, "must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&of) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&at, of, detail);
    }
    for (field, value) in [
        ("value", &target.value),
        ("averageValue", &target.average_value),
    ] {
        if let Some(value) = value
            && !is_positive(value)
        {
            errors.invalid(&path.field(field), value, "must be positive");
        }
    }
    if let Some(percent) = target.average_utilization
        && percent < 1
    {
        let detail = "must be greater than 0";
        errors.invalid(&path.field("averageUtilization"), percent, detail);
    }
}

fn is_positive(value: &Quantity) -> bool {
    Amount::parse(&value.string).is_ok_and(|amount| amount > Amount::ZERO)
}

fn validate_identifier(metric: &MetricIdentifier, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("name");
    match metric.name.as_str() {
        "" => errors.required(&at, "must specify a metric name"),
        name => errors.check(&at, name, names::validate_path_segment),
    }
    label_selector::validate(metric.selector.as_ref(), &path.field("selector"), errors);
}
