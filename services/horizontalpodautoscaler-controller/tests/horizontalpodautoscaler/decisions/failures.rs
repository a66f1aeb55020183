//! Decisions without a metric, or without a target: the cases of upstream's `horizontal_test.go`.

use std::sync::Arc;

use serde_json::json;
use setpoint_horizontalpodautoscaler_controller::{Reading, World, decide};
use setpoint_model::{Key, Selector};

use crate::decisions::decision::{CPU_ABOVE, conditions, message, reasons, rescale};
use crate::decisions::fixture::{NAMESPACE, cpu_spec, cpu_world, labels};

fn with_invalid(usages: &[i64], target: i32) -> World {
    let mut spec = cpu_spec(2, 6, target);
    let invalid = json!({"type": "CheddarCheese"});
    spec["metrics"].as_array_mut().unwrap().push(invalid);
    let mut world = cpu_world(spec, usages);
    world.readings.push(Reading::Values(Err(String::new())));
    world
}

/// Checks H1.
#[test]
fn a_metric_that_fails_blocks_fewer_replicas_but_not_more() {
    let up = with_invalid(&[300, 400, 500], 30);
    assert_eq!(rescale(&up), Some((4, CPU_ABOVE.to_owned())));
    let decision = decide(&up);
    assert_eq!(reasons(&decision), ["InvalidMetricSourceType"]);
    assert!(conditions(&decision).contains(&("ScalingActive", "True", "ValidMetricFound")));
    assert_eq!(decision.metrics[1], Default::default());

    let same = decide(&with_invalid(&[300, 300, 300], 30));
    assert!(conditions(&same).contains(&("ScalingActive", "True", "ValidMetricFound")));

    let down = with_invalid(&[100, 300, 500, 250, 250], 50);
    assert_eq!(rescale(&down), None);
    let decision = decide(&down);
    let expected = [
        ("AbleToScale", "True", "SucceededGetScale"),
        ("ScalingActive", "False", "InvalidMetricSourceType"),
    ];
    assert_eq!(conditions(&decision), expected);
    let warnings = [
        ("InvalidMetricSourceType", "unknown metric source type \"CheddarCheese\"".to_owned()),
        (
            "FailedComputeMetricsReplicas",
            "invalid metrics (1 invalid out of 2), first error is: unknown metric source type \"CheddarCheese\"".to_owned(),
        ),
    ];
    assert_eq!(decision.warnings, warnings);
    assert_eq!((decision.current, decision.recommendation), (Some(5), None));
}

#[test]
fn a_failure_is_reported_in_the_words_of_upstream() {
    let pods = || Reading::Pods(Err("unable to fetch: no".into()));
    let values = || Reading::Values(Err("unable to fetch: no".into()));
    let described = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"});
    let metric = json!({"name": "qps"});
    let invalid = json!({"name": "qps", "selector": {
        "matchExpressions": [{"key": "zone", "operator": "Sometimes"}]}});
    let selected = json!({"name": "qps", "selector": {
        "matchLabels": {"queue": "jobs"},
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}});
    let (value, average) = (
        json!({"type": "Value", "value": "15"}),
        json!({"type": "AverageValue", "averageValue": "15"}),
    );
    let utilization = json!({"type": "Utilization", "averageUtilization": 50});
    #[rustfmt::skip]
    let cases = [
        (json!({"type": "Resource", "resource": {"name": "cpu", "target": utilization}}), pods(), "FailedGetResourceMetric",
         "failed to get cpu resource metric value: ",
         "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch: no"),
        (json!({"type": "Resource", "resource": {"name": "memory", "target": average}}), pods(), "FailedGetResourceMetric",
         "failed to get memory resource metric value: ",
         "failed to get memory usage: unable to get metrics for resource memory: unable to fetch: no"),
        (json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value"}}}), pods(), "FailedGetResourceMetric",
         "failed to get cpu resource metric value: ",
         "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"),
        (json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": utilization}}), pods(), "FailedGetContainerResourceMetric",
         "failed to get main container metric value: ",
         "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch: no"),
        (json!({"type": "Pods", "pods": {"metric": metric, "target": average}}), pods(), "FailedGetPodsMetric",
         "failed to get pods metric value: ",
         "unable to get metric qps: unable to fetch: no"),
        (json!({"type": "Object", "object": {"describedObject": described, "metric": metric, "target": value}}), values(), "FailedGetObjectMetric",
         "failed to get object metric value: ",
         "unable to get metric qps: Deployment on shop other/unable to fetch: no"),
        (json!({"type": "Object", "object": {"describedObject": described, "metric": metric, "target": average}}), values(), "FailedGetObjectMetric",
         "failed to get object metric value: failed to get qps object metric: ",
         "unable to get metric qps: Deployment on shop other/unable to fetch: no"),
        (json!({"type": "External", "external": {"metric": metric, "target": value}}), values(), "FailedGetExternalMetric",
         "failed to get qps external metric value: failed to get external metric qps: ",
         "unable to get external metric shop/qps/nil: unable to fetch: no"),
        (json!({"type": "External", "external": {"metric": metric, "target": average}}), values(), "FailedGetExternalMetric",
         "failed to get qps external metric value: failed to get qps external metric: ",
         "unable to get external metric shop/qps/nil: unable to fetch: no"),
        (json!({"type": "External", "external": {"metric": invalid, "target": average}}), values(), "FailedGetExternalMetric",
         "failed to get qps external metric value: failed to get qps external metric: ",
         "\"Sometimes\" is not a valid label selector operator"),
        (json!({"type": "External", "external": {"metric": selected, "target": average}}), values(), "FailedGetExternalMetric",
         "failed to get qps external metric value: failed to get qps external metric: ",
         "unable to get external metric shop/qps/&LabelSelector{MatchLabels:map[string]string{queue: jobs,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:zone,Operator:In,Values:[a b],},},}: unable to fetch: no"),
    ];
    for (metric, reading, reason, prefix, error) in cases {
        let mut spec = cpu_spec(1, 100, 10);
        spec["metrics"] = json!([metric]);
        let mut world = cpu_world(spec, &[100, 200, 300]);
        world.readings = vec![reading];
        let decision = decide(&world);
        assert_eq!(rescale(&world), None);
        let expected = [
            ("AbleToScale", "True", "SucceededGetScale"),
            ("ScalingActive", "False", reason),
        ];
        assert_eq!(conditions(&decision), expected);
        let all = format!("invalid metrics (1 invalid out of 1), first error is: {prefix}{error}");
        let warnings = [
            (reason, error.to_owned()),
            ("FailedComputeMetricsReplicas", all),
        ];
        assert_eq!(decision.warnings, warnings);
        let message = message(&decision, "ScalingActive");
        assert_eq!(
            message,
            format!("the HPA was unable to compute the replica count: {error}")
        );
    }
}

#[test]
fn a_target_without_a_valid_selector_is_not_scaled() {
    let cases = [
        (
            "",
            "SelectorRequired",
            "selector is required",
            "the HPA target's scale is missing a selector",
        ),
        (
            "cheddar cheese",
            "InvalidSelector",
            "couldn't convert selector",
            "couldn't convert selector",
        ),
    ];
    for (selector, event, error, expected) in cases {
        let mut world = cpu_world(cpu_spec(1, 100, 10), &[100, 200, 300]);
        if let Ok(scale) = &mut world.scale {
            scale.scale.status.selector = selector.to_owned();
        }
        let decision = decide(&world);
        assert_eq!(rescale(&world), None);
        assert_eq!(reasons(&decision), [event, "FailedComputeMetricsReplicas"]);
        assert!(
            decision
                .warnings
                .iter()
                .all(|(_, text)| text.starts_with(error))
        );
        assert!(message(&decision, "ScalingActive").starts_with(expected));
        let invalid = ("ScalingActive", "False", "InvalidSelector");
        assert!(conditions(&decision).contains(&invalid));
    }
}

#[test]
fn pods_of_two_autoscalers_are_not_scaled() {
    let rival = |selector: &str| {
        let selector = Selector::parse(selector).unwrap();
        vec![(Key::new(NAMESPACE, "worker"), Arc::new(selector))]
    };
    let mut world = cpu_world(cpu_spec(2, 6, 30), &[300, 500, 700]);
    world.rivals = rival("app=other");
    assert!(rescale(&world).is_some());
    for selector in ["app=web", "app in (web, other)"] {
        world.rivals = rival(selector);
        assert_eq!(rescale(&world), None);
        let decision = decide(&world);
        assert_eq!(
            reasons(&decision),
            ["AmbiguousSelector", "FailedComputeMetricsReplicas"]
        );
        let expected =
            "pods by selector app=web are controlled by multiple HPAs: [{web shop} {worker shop}]";
        assert_eq!(message(&decision, "ScalingActive"), expected);
    }
    world.pods.truncate(1);
    Arc::make_mut(&mut world.pods[0]).labels = labels("other");
    world.rivals = rival("app=web");
    assert!(!reasons(&decide(&world)).contains(&"AmbiguousSelector"));
}

#[test]
fn a_target_whose_scale_cannot_be_read_is_not_scaled() {
    let mut world = cpu_world(cpu_spec(1, 100, 10), &[100]);
    world.scale = Err("something went wrong".to_owned());
    assert_eq!(rescale(&world), None);
    let decision = decide(&world);
    assert_eq!(
        conditions(&decision),
        [("AbleToScale", "False", "FailedGetScale")]
    );
    let expected =
        "the HPA controller was unable to get the target's current scale: something went wrong";
    assert_eq!(message(&decision, "AbleToScale"), expected);
    assert_eq!(
        decision.warnings,
        [("FailedGetScale", "something went wrong".to_owned())]
    );
    assert_eq!((decision.current, decision.failed), (None, true));
}
