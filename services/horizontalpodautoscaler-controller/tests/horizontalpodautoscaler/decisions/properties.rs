//! Properties of every decision.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use setpoint_horizontalpodautoscaler_controller::{
    Action, History, Reading, World, decide, plan, resource_samples,
};

use crate::decisions::fixture::{ago, cpu_spec, cpu_world, pod_metrics, scale};

/// Returns the replicas after the plan of a world.
fn replicas(world: &World) -> i32 {
    let current = world.scale.as_ref().unwrap().replicas();
    plan(world)
        .steps
        .first()
        .map_or(current, |step| match step.action {
            Action::Scale { replicas, .. } => replicas,
        })
}

fn behavior() -> impl Strategy<Value = Value> {
    let policy = (prop::bool::ANY, 1..200_i32, 1..1_800_i32).prop_map(|(pods, value, period)| {
        let kind = if pods { "Pods" } else { "Percent" };
        json!({"type": kind, "value": value, "periodSeconds": period})
    });
    let select = prop::sample::select(vec!["Max", "Min", "Disabled"]);
    let policies = prop::collection::vec(policy, 1..3);
    let rules = (policies, select, 0..3_600_i32).prop_map(|(policies, select, window)| {
        json!({"policies": policies, "selectPolicy": select, "stabilizationWindowSeconds": window})
    });
    let both = (rules.clone(), rules);
    let both = both.prop_map(|(up, down)| json!({"scaleUp": up, "scaleDown": down}));
    prop_oneof![Just(Value::Null), both]
}

fn history() -> impl Strategy<Value = History> {
    let recommended = prop::collection::vec((0..30_i32, 0..4_000_u64), 0..9);
    recommended.prop_map(|mut all| {
        all.sort_by_key(|(_, seconds)| std::cmp::Reverse(*seconds));
        let mut history = History::default();
        for (replicas, seconds) in all {
            history.recommend(replicas, ago(seconds), Duration::from_secs(3_600));
        }
        history
    })
}

prop_compose! {
    fn world()(
        (min, more) in (1..10_i32, 0..20_i32),
        target in 1..200_i32,
        usages in prop::collection::vec(0..4_000_i64, 1..20),
        known in 0..20_usize,
        behavior in behavior(),
        history in history(),
        current in 1..40_i32,
    ) -> World {
        let mut spec = cpu_spec(min, min + more, target);
        spec["behavior"] = behavior;
        let mut world = cpu_world(spec, &usages);
        world.scale = Ok(scale(current));
        world.history = history;
        let metrics: Vec<_> = usages.iter().enumerate().take(known.max(1))
            .map(|(n, usage)| pod_metrics(&format!("web-{n}"), "cpu", &[*usage])).collect();
        world.readings = vec![Reading::Pods(Ok(resource_samples(&metrics, "cpu", None)))];
        world
    }
}

/// Multiplies the usage of all Pods.
fn times(world: &World, factor: i64) -> World {
    let mut world = world.clone();
    if let Some(Reading::Pods(Ok(samples))) = world.readings.first_mut() {
        samples
            .values_mut()
            .for_each(|sample| sample.value *= factor);
    }
    world
}

proptest! {
    /// Checks H1.
    #[test]
    fn replicas_move_toward_the_bounds_and_stay_within_them(world in world()) {
        let spec = &world.autoscaler.spec;
        let (current, after) = (world.scale.as_ref().unwrap().replicas(), replicas(&world));
        if current > spec.max {
            prop_assert_eq!(after, spec.max);
        } else if current < spec.min {
            prop_assert_eq!(after, spec.min);
        } else {
            prop_assert!((spec.min..=spec.max).contains(&after), "{after}");
        }
    }

    /// Checks H1.
    #[test]
    fn more_usage_asks_for_no_fewer_replicas(mut world in world()) {
        world.scale = Ok(scale(i32::try_from(world.pods.len()).unwrap()));
        let recommended = |factor| decide(&times(&world, factor)).recommendation;
        if let (Some(less), Some(more)) = (recommended(1), recommended(2)) {
            prop_assert!(less <= more, "{less} {more}");
        }
        prop_assert!(replicas(&times(&world, 1)) <= replicas(&times(&world, 2)));
    }

    /// Checks H1.
    #[test]
    fn usage_at_the_target_asks_for_no_change(mut world in world(), tenth in 0..=10_i64) {
        let target = i64::from(match world.autoscaler.spec.metrics[0].target {
            setpoint_horizontalpodautoscaler_controller::TargetValue::Utilization(target) => target,
            _ => unreachable!(),
        });
        // Within 10 %, in percent rounded down.
        let percent = target + target * tenth / 100;
        if let Some(Reading::Pods(Ok(samples))) = world.readings.first_mut() {
            samples.values_mut().for_each(|sample| sample.value = percent * 10);
        }
        let current = world.scale.as_ref().unwrap().replicas();
        let recommended = decide(&world).recommendation;
        prop_assert!(recommended.is_none_or(|replicas| replicas == current));
    }

    #[test]
    fn a_decision_depends_on_its_world_alone(world in world()) {
        prop_assert_eq!(decide(&world), decide(&world.clone()));
        let mut reordered = world.clone();
        reordered.pods.reverse();
        prop_assert_eq!(decide(&reordered), decide(&world));
    }

    /// Checks H1.
    #[test]
    fn pods_without_metrics_never_turn_a_change(world in world(), kept in 1..20_usize) {
        let mut fewer = world.clone();
        fewer.pods.truncate(kept);
        let all = decide(&world).recommendation;
        let current = world.scale.as_ref().unwrap().replicas();
        if let Some(Reading::Pods(Ok(samples))) = world.readings.first()
            && let Some(all) = all
        {
            let sum: i64 = samples.values().map(|sample| sample.value).sum();
            let percent = sum * 100 / (i64::try_from(samples.len()).unwrap() * 1_000);
            let is_missing = samples.len() < world.pods.len();
            let target = match world.autoscaler.spec.metrics[0].target {
                setpoint_horizontalpodautoscaler_controller::TargetValue::Utilization(target) => i64::from(target),
                _ => unreachable!(),
            };
            if is_missing && percent > target {
                prop_assert!(all >= current);
            } else if is_missing && percent < target {
                prop_assert!(all <= current);
            }
        }
    }
}
