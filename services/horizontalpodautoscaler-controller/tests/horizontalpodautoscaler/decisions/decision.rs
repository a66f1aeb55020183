//! Decisions: the cases of upstream's `horizontal_test.go`.

use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};
use setpoint_horizontalpodautoscaler_controller::{
    Action, Decision, History, Reading, Select, World, decide, plan, resource_samples,
};

use crate::decisions::fixture::{
    ago, autoscaler, change, cpu_spec, cpu_world, now, pod_metrics, requests, scale,
};

/// Returns the replicas that are set, with the reason in the Event.
pub fn rescale(world: &World) -> Option<(i32, String)> {
    let plan = plan(world);
    assert!(plan.steps.len() < 2);
    plan.steps.into_iter().next().map(|step| match step.action {
        Action::Scale { replicas, reason } => (replicas, reason),
    })
}

pub fn conditions(decision: &Decision) -> Vec<(&str, &str, &str)> {
    let all = decision.conditions.iter();
    all.map(|one| (one.kind, one.status, one.reason)).collect()
}

pub fn message<'a>(decision: &'a Decision, kind: &str) -> &'a str {
    let condition = decision.conditions.iter().find(|one| one.kind == kind);
    &condition.unwrap().message
}

pub fn reasons(decision: &Decision) -> Vec<&str> {
    decision
        .warnings
        .iter()
        .map(|(reason, _)| *reason)
        .collect()
}

pub const CPU_ABOVE: &str = "cpu resource utilization (percentage of request) above target";
const BELOW: &str = "All metrics below target";

/// Checks H1.
#[test]
fn the_usage_of_cpu_changes_the_replicas_within_the_bounds() {
    // Bounds, target, usages; replicas, reason in the Event, reason of ScalingLimited.
    #[rustfmt::skip]
    let cases: &[((i32, i32), i32, &[i64], Option<(i32, &str)>, &str)] = &[
        ((2, 6), 30, &[300, 500, 700], Some((5, CPU_ABOVE)), "DesiredWithinRange"),
        ((2, 6), 50, &[100, 300, 500, 250, 250], Some((3, BELOW)), "DesiredWithinRange"),
        ((1, 5), 100, &[1_010, 1_030, 1_020], None, "DesiredWithinRange"),
        ((3, 3), 100, &[1_010, 1_030, 1_020], None, "DesiredWithinRange"),
        ((2, 5), 90, &[10, 95, 10], Some((2, BELOW)), "TooFewReplicas"),
        ((2, 5), 90, &[0, 0, 0], Some((2, BELOW)), "TooFewReplicas"),
        ((0, 5), 90, &[0, 0, 0], Some((0, BELOW)), "DesiredWithinRange"),
        ((2, 5), 90, &[8_000, 9_500, 1_000], Some((5, CPU_ABOVE)), "TooManyReplicas"),
        // Upstream's `TestUpscaleCap`: at most twice as many.
        ((1, 100), 10, &[100, 200, 300], Some((6, CPU_ABOVE)), "DesiredWithinRange"),
        ((1, 100), 10, &[1_000, 2_000, 3_000], Some((6, CPU_ABOVE)), "ScaleUpLimit"),
        ((1, 20), 10, &[1_000, 2_000, 3_000], Some((6, CPU_ABOVE)), "ScaleUpLimit"),
        ((1, 5), 70, &[1_400, 1_400, 1_400], Some((5, CPU_ABOVE)), "TooManyReplicas"),
        ((1, 9), 70, &[1_400, 1_400, 1_400], Some((6, CPU_ABOVE)), "DesiredWithinRange"),
    ];
    for ((min, max), target, usages, expected, limited) in cases {
        let world = cpu_world(cpu_spec(*min, *max, *target), usages);
        let expected = expected.map(|(replicas, reason)| (replicas, reason.to_owned()));
        assert_eq!(rescale(&world), expected, "{usages:?}");
        let decision = decide(&world);
        let is_limited = if *limited == "DesiredWithinRange" {
            "False"
        } else {
            "True"
        };
        let all = [
            ("AbleToScale", "True", "ReadyForNewScale"),
            ("ScalingActive", "True", "ValidMetricFound"),
            ("ScalingLimited", is_limited, *limited),
        ];
        let mut found = conditions(&decision);
        found.sort_unstable();
        assert_eq!(found, all, "{usages:?}");
        assert_eq!(decision, decide(&world), "a repetition decides the same");
    }
}

#[test]
fn replicas_out_of_bounds_are_set_to_the_bound_without_metrics() {
    for (current, expected, reason) in [
        (2, 3, "Current number of replicas below Spec.MinReplicas"),
        (10, 5, "Current number of replicas above Spec.MaxReplicas"),
    ] {
        let mut world = cpu_world(cpu_spec(3, 5, 90), &[]);
        world.readings.clear();
        world.scale = Ok(scale(current));
        assert_eq!(rescale(&world), Some((expected, reason.to_owned())));
        let decision = decide(&world);
        assert_eq!(
            conditions(&decision),
            [("AbleToScale", "True", "SucceededGetScale")]
        );
        assert_eq!((decision.warnings, decision.metrics), (vec![], vec![]));
    }
}

#[test]
fn no_replicas_disable_an_autoscaler_until_a_user_sets_some() {
    for (min, scale_to_zero) in [(3, false), (0, false), (3, true), (0, true)] {
        let mut world = cpu_world(cpu_spec(min, 5, 90), &[]);
        Arc::make_mut(&mut world.settings).scale_to_zero = scale_to_zero;
        world.scale = Ok(scale(0));
        assert_eq!(rescale(&world), None);
        let decision = decide(&world);
        let disabled = [
            ("AbleToScale", "True", "SucceededGetScale"),
            ("ScalingActive", "False", "ScalingDisabled"),
        ];
        assert_eq!(conditions(&decision), disabled);
        let message = message(&decision, "ScalingActive");
        assert_eq!(
            message,
            "scaling is disabled since the replica count of the target is zero"
        );
        assert_eq!(decision.warnings, []);
        assert_eq!(decision.forgets_zero, !scale_to_zero);
    }
}

#[test]
fn a_step_says_whether_the_metrics_or_the_bounds_ask_for_it() {
    let planned = |(min, max), usages: &[i64]| {
        let world = cpu_world(cpu_spec(min, max, 30), usages);
        let plan = plan(&world);
        format!(
            "{} replicas of {min} to {max}, usages {usages:?}\n{plan}",
            usages.len()
        )
    };
    let plans = [
        planned((1, 9), &[900, 900]),
        planned((1, 9), &[10, 10]),
        planned((1, 9), &[300, 310]),
        planned((1, 1), &[300, 300]),
        planned((3, 9), &[300, 300]),
    ];
    expect![[r#"
        2 replicas of 1 to 9, usages [900, 900]
        Scale { replicas: 4, reason: "cpu resource utilization (percentage of request) above target" } because the metrics ask for more replicas
        2 replicas of 1 to 9, usages [10, 10]
        Scale { replicas: 1, reason: "All metrics below target" } because the metrics ask for fewer replicas
        2 replicas of 1 to 9, usages [300, 310]
        2 replicas of 1 to 1, usages [300, 300]
        Scale { replicas: 1, reason: "Current number of replicas above Spec.MaxReplicas" } because more replicas than the maximum
        2 replicas of 3 to 9, usages [300, 300]
        Scale { replicas: 3, reason: "Current number of replicas below Spec.MinReplicas" } because fewer replicas than the minimum
    "#]]
    .assert_eq(&plans.concat());
}

fn external(target: Value) -> Value {
    let mut spec = cpu_spec(0, 6, 30);
    spec["metrics"] = json!([{"type": "External", "external": {
        "metric": {"name": "qps", "selector": {"matchLabels": {"queue": "jobs"}}}, "target": target}}]);
    spec
}

fn with_zero(spec: Value, condition: &str, current: i32, value: i64) -> World {
    let mut world = cpu_world(spec, &vec![0; usize::try_from(current).unwrap()]);
    Arc::make_mut(&mut world.settings).scale_to_zero = true;
    world.readings = vec![Reading::Values(Ok(vec![value]))];
    change(&mut world, |autoscaler| {
        let json =
            json!([{"type": "ScaledToZero", "status": condition, "lastTransitionTime": null}]);
        autoscaler.status.conditions = serde_json::from_value(json).unwrap();
    });
    world
}

/// Upstream's cases of the feature gate `HPAScaleToZero`.
#[test]
fn an_autoscaler_that_removed_all_replicas_sets_some_again() {
    let name = "external metric qps(&LabelSelector{MatchLabels:map[string]string{queue: jobs,},MatchExpressions:[]LabelSelectorRequirement{},}) above target";
    let spec = || external(json!({"type": "Value", "value": "1"}));
    let world = with_zero(spec(), "True", 0, 1_500);
    assert_eq!(rescale(&world), Some((2, name.to_owned())));
    assert_eq!(rescale(&with_zero(spec(), "True", 0, 0)), None);
    assert_eq!(
        rescale(&with_zero(spec(), "False", 0, 1_500)),
        None,
        "a user removed them"
    );
    assert_eq!(
        rescale(&with_zero(spec(), "True", 2, 0)),
        Some((0, BELOW.to_owned()))
    );
    let mut raised = spec();
    raised["minReplicas"] = 2.into();
    let reason = "Current number of replicas below Spec.MinReplicas";
    for behavior in [json!(null), json!({"scaleDown": {"selectPolicy": "Max"}})] {
        raised["behavior"] = behavior;
        let world = with_zero(raised.clone(), "True", 0, 0);
        assert_eq!(rescale(&world), Some((2, reason.to_owned())));
    }
    let disabled = |min| {
        let decision = decide(&with_zero(cpu_spec(min, 6, 30), "True", 0, 0));
        conditions(&decision).contains(&("ScalingActive", "False", "ScalingDisabled"))
    };
    assert!(disabled(0), "there are no metrics without Pods");
    assert!(!disabled(1));
}

#[test]
fn the_status_of_an_external_metric_has_its_value_or_its_average() {
    for (target, current) in [
        (
            json!({"type": "Value", "value": "1"}),
            json!({"value": "2048"}),
        ),
        (
            json!({"type": "AverageValue", "averageValue": "1"}),
            json!({"averageValue": "1024"}),
        ),
    ] {
        let spec = external(target);
        let metric = spec["metrics"][0]["external"]["metric"].clone();
        let decision = decide(&with_zero(spec, "False", 2, 2_048_000));
        let expected =
            json!([{"type": "External", "external": {"metric": metric, "current": current}}]);
        assert_eq!(serde_json::to_value(decision.metrics).unwrap(), expected);
    }
}

/// Checks H1.
#[test]
fn of_several_metrics_the_one_that_asks_for_the_most_replicas_counts() {
    let mut spec = cpu_spec(2, 6, 30);
    spec["metrics"].as_array_mut().unwrap().extend([
        json!({"type": "Pods", "pods": {
            "metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "15"}}}),
        json!({"type": "Object", "object": {
            "describedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
            "metric": {"name": "hits"}, "target": {"type": "Value", "value": "15"}}}),
        json!({"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "main", "target": {"type": "Utilization", "averageUtilization": 90}}}),
        json!({"type": "Resource", "resource": {
            "name": "memory", "target": {"type": "AverageValue", "averageValue": "1Ki"}}}),
    ]);
    let mut world = cpu_world(spec, &[300, 400, 200]);
    let samples = |resource: &str, millis: i64| {
        let metrics: Vec<_> = (0..3)
            .map(|n| pod_metrics(&format!("web-{n}"), resource, &[millis]))
            .collect();
        Reading::Pods(Ok(resource_samples(&metrics, resource, None)))
    };
    world.readings.extend([
        samples("qps", 20_000),
        Reading::Values(Ok(vec![16_000])),
        samples("cpu", 300),
        samples("memory", 2_048_000),
    ]);
    // The CPU asks for 3, qps for 4, the object for 3, the container for 1, the memory for 6.
    let most = Some((6, "memory resource above target".to_owned()));
    assert_eq!(rescale(&world), most);
    let mut reversed = world.clone();
    change(&mut reversed, |autoscaler| {
        autoscaler.spec.metrics.reverse()
    });
    reversed.readings.reverse();
    assert_eq!(rescale(&reversed), most);
    let current: Vec<_> = decide(&world)
        .metrics
        .into_iter()
        .map(|status| serde_json::to_value(status).unwrap())
        .collect();
    let expected = json!([
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "300m", "averageUtilization": 30}}},
        {"type": "Pods", "pods": {"metric": {"name": "qps"}, "current": {"averageValue": "20"}}},
        {"type": "Object", "object": {
            "describedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
            "metric": {"name": "hits"}, "current": {"value": "16"}}},
        {"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "main", "current": {"averageValue": "300m", "averageUtilization": 30}}},
        {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "2Ki"}}},
    ]);
    assert_eq!(json!(current), expected);
}

#[test]
fn of_metrics_that_ask_for_the_same_the_first_is_named_and_for_no_replicas_the_last() {
    let named = |value: i64| {
        let mut spec = external(json!({"type": "Value", "value": "1"}));
        let mut second = spec["metrics"][0].clone();
        second["external"]["metric"] = json!({"name": "second"});
        spec["metrics"].as_array_mut().unwrap().push(second);
        let mut world = with_zero(spec, "False", 2, value);
        world.readings.push(world.readings[0].clone());
        let decision = decide(&world);
        message(&decision, "ScalingActive").contains("external metric second(nil)")
    };
    assert!(!named(1_500));
    assert!(named(0), "as upstream");
}

/// Checks H1.
#[test]
fn a_new_leader_removes_no_replicas_within_the_window() {
    // Upstream's `TestScaleDownStabilizeInitialSize`.
    let mut world = cpu_world(cpu_spec(2, 6, 50), &[100, 300, 500, 250, 250]);
    world.history = History::starting_at(5, now());
    assert_eq!(rescale(&world), None);
    let decision = decide(&world);
    assert!(conditions(&decision).contains(&("AbleToScale", "True", "ScaleDownStabilized")));
    assert_eq!(decision.recommendation, Some(3));
    world.history = History::starting_at(5, ago(301));
    assert_eq!(rescale(&world), Some((3, BELOW.to_owned())));
}

/// Upstream's `TestStabilizeDownscale`.
#[test]
fn the_largest_recent_recommendation_stands() {
    let mut world = cpu_world(cpu_spec(1, 5, 100), &[50, 50, 50, 50, 50]);
    let mut history = History::default();
    history.recommend(10, ago(600), std::time::Duration::from_secs(3_600));
    history.recommend(4, ago(60), std::time::Duration::from_secs(3_600));
    world.history = history;
    assert_eq!(rescale(&world), Some((4, BELOW.to_owned())));
}

#[test]
fn tolerances_of_the_spec_come_before_the_setting() {
    // Upstream's `TestConfigurableTolerance`.
    let world = |behavior: Value, usages: &[i64]| {
        let mut spec = cpu_spec(1, 5, 100);
        spec["behavior"] = behavior;
        rescale(&cpu_world(spec, usages)).map(|(replicas, _)| replicas)
    };
    let up = |tolerance: &str| json!({"scaleUp": {"tolerance": tolerance, "policies": [{"type": "Pods", "value": 9, "periodSeconds": 15}]}});
    assert_eq!(world(up("0.01"), &[1_020, 1_020, 1_020]), Some(4));
    assert_eq!(world(up("50m"), &[1_020, 1_020, 1_020]), None);
    assert_eq!(world(up("2"), &[2_900, 2_900, 2_900]), None);
    assert_eq!(world(json!(null), &[1_020, 1_020, 1_020]), None);
    let down = |tolerance: &str| json!({"scaleDown": {"tolerance": tolerance, "stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 9, "periodSeconds": 15}]}});
    assert_eq!(world(down("0.4"), &[650, 650, 650]), None);
    assert_eq!(world(down("0.3"), &[650, 650, 650]), Some(2));
}

#[test]
fn a_scale_with_other_replicas_is_otherwise_the_one_that_was_read() {
    let mut read = scale(3);
    read.scale.metadata.resource_version = "7".into();
    let mut expected = read.scale.clone();
    expected.spec.replicas = 5;
    assert_eq!(read.with(5), expected);
}

#[test]
fn an_autoscaler_that_is_being_deleted_does_nothing() {
    let mut world = cpu_world(cpu_spec(2, 6, 30), &[300, 500, 700]);
    change(&mut world, |autoscaler| autoscaler.meta.deleting = true);
    assert_eq!(rescale(&world), None);
}

#[test]
fn sidecars_and_unknown_policies_of_a_spec_are_read_totally() {
    let mut spec = cpu_spec(1, 5, 100);
    spec["behavior"] = json!({"scaleUp": {"selectPolicy": "Min", "stabilizationWindowSeconds": -1, "policies": [
        {"type": "Cheese", "value": 1, "periodSeconds": 1}, {"type": "Percent", "value": 50, "periodSeconds": 60}]}});
    let behavior = autoscaler(spec).spec.behavior.unwrap();
    assert_eq!(behavior.up.policies.len(), 1);
    assert_eq!(behavior.up.window, Some(std::time::Duration::ZERO));
    assert_eq!(behavior.up.select, Select::Min);
    assert_eq!(behavior.down.policies.len(), 1, "the default");
    assert_eq!(requests("a", "cpu", 1).requests.len(), 1);
    for (policy, select) in [("Disabled", Select::Disabled), ("Max", Select::Max)] {
        let mut spec = cpu_spec(1, 5, 100);
        spec["behavior"] = json!({"scaleDown": {"selectPolicy": policy}});
        let behavior = autoscaler(spec).spec.behavior.unwrap();
        assert_eq!(behavior.down.select, select);
    }
}
