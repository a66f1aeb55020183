//! The status of an autoscaler.

use std::sync::Arc;

use serde_json::json;
use setpoint_controller::Outcome;
use setpoint_horizontalpodautoscaler_controller::{Action, Reading, World, plan, status};
use setpoint_proto::autoscaling_v2::HorizontalPodAutoscalerStatus;
use setpoint_proto::{ApiError, Reason};

use crate::decisions::fixture::{ago, change, cpu_spec, cpu_world, now, scale};

fn done(world: &World) -> Outcome<Action> {
    let plan = plan(world);
    let done = plan.steps.len();
    Outcome {
        plan,
        failed: None,
        done,
    }
}

fn failed(world: &World, reason: Reason) -> Outcome<Action> {
    Outcome {
        failed: Some(ApiError::new(reason, "something went wrong")),
        ..Outcome::of(plan(world))
    }
}

fn conditions(status: &HorizontalPodAutoscalerStatus) -> Vec<(&str, &str, &str)> {
    let all = status.conditions.iter();
    all.map(|one| (&*one.r#type, &*one.status, &*one.reason))
        .collect()
}

fn above() -> World {
    cpu_world(cpu_spec(2, 6, 30), &[300, 500, 700])
}

#[test]
fn a_change_is_reported_with_its_time_and_the_conditions_of_upstream() {
    let world = above();
    let status = status(&world, &done(&world)).unwrap();
    assert_eq!((status.current_replicas, status.desired_replicas), (3, 5));
    assert_eq!(status.last_scale_time, Some(now().into()));
    assert_eq!(
        status.observed_generation, None,
        "generations are not counted"
    );
    let mut found = conditions(&status);
    found.sort_unstable();
    let expected = [
        ("AbleToScale", "True", "SucceededRescale"),
        ("ScalingActive", "True", "ValidMetricFound"),
        ("ScalingLimited", "False", "DesiredWithinRange"),
    ];
    assert_eq!(found, expected);
    let able = status
        .conditions
        .iter()
        .find(|one| one.r#type == "AbleToScale");
    let able = able.unwrap();
    assert_eq!(
        able.message,
        "the HPA controller was able to update the target scale to 5"
    );
    assert_eq!(able.last_transition_time, now().into());
    let active = status
        .conditions
        .iter()
        .find(|one| one.r#type == "ScalingActive");
    assert_eq!(
        active.unwrap().message,
        "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)"
    );
}

#[test]
fn an_equal_status_is_not_written_again() {
    let mut world = cpu_world(cpu_spec(1, 5, 100), &[1_010, 1_030, 1_020]);
    let written = status(&world, &done(&world)).unwrap();
    assert_eq!((written.current_replicas, written.desired_replicas), (3, 3));
    assert_eq!(written.last_scale_time, None);
    change(&mut world, |autoscaler| autoscaler.status = written);
    assert_eq!(status(&world, &done(&world)), None);
    change(&mut world, |autoscaler| autoscaler.meta.generation = 1);
    let counted = status(&world, &done(&world)).unwrap();
    assert_eq!(counted.observed_generation, Some(1));
    change(&mut world, |autoscaler| autoscaler.meta.deleting = true);
    assert_eq!(status(&world, &done(&world)), None);
}

#[test]
fn a_change_that_is_refused_is_a_condition_and_one_that_was_overtaken_is_none() {
    let mut world = above();
    change(&mut world, |autoscaler| {
        autoscaler.status.desired_replicas = 4
    });
    let refused = status(&world, &failed(&world, Reason::Forbidden)).unwrap();
    assert_eq!((refused.current_replicas, refused.desired_replicas), (3, 4));
    assert_eq!(refused.last_scale_time, None);
    let able = refused
        .conditions
        .iter()
        .find(|one| one.r#type == "AbleToScale")
        .unwrap();
    assert_eq!(
        (&*able.status, &*able.reason),
        ("False", "FailedUpdateScale")
    );
    let expected = "the HPA controller was unable to update the target scale: ";
    assert!(able.message.starts_with(expected), "{}", able.message);
    assert_eq!(status(&world, &failed(&world, Reason::Conflict)), None);
}

#[test]
fn a_failure_keeps_what_the_status_says_of_the_replicas() {
    let mut world = above();
    change(&mut world, |autoscaler| {
        (
            autoscaler.status.current_replicas,
            autoscaler.status.desired_replicas,
        ) = (3, 4);
        autoscaler.status.last_scale_time = Some(ago(60).into());
    });
    world.readings = vec![Reading::Pods(Err("no".into()))];
    let unread = status(&world, &done(&world)).unwrap();
    assert_eq!((unread.current_replicas, unread.desired_replicas), (3, 4));
    assert_eq!(unread.current_metrics, [Default::default()], "as upstream");
    assert_eq!(unread.last_scale_time, Some(ago(60).into()));
    world.scale = Err("no".into());
    let gone = status(&world, &done(&world)).unwrap();
    assert_eq!((gone.current_replicas, gone.desired_replicas), (3, 4));
    assert_eq!(
        conditions(&gone),
        [("AbleToScale", "False", "FailedGetScale")]
    );
}

#[test]
fn a_change_whose_report_was_lost_is_reported_by_the_next_reconcile() {
    let mut world = cpu_world(cpu_spec(1, 5, 100), &[1_000, 1_000, 1_000]);
    world.history.scaled(2, 3, ago(15), None);
    let status = status(&world, &done(&world)).unwrap();
    assert_eq!(status.last_scale_time, Some(ago(15).into()));
}

#[test]
fn scaling_to_zero_is_remembered_in_a_condition_if_it_is_allowed() {
    let mut spec = cpu_spec(0, 6, 30);
    spec["metrics"] = json!([{"type": "External", "external": {
        "metric": {"name": "qps"}, "target": {"type": "Value", "value": "1"}}}]);
    let mut world = cpu_world(spec, &[0, 0]);
    world.readings = vec![Reading::Values(Ok(vec![0]))];
    let zero = |world: &World| {
        let status = status(world, &done(world)).unwrap();
        assert_eq!(status.desired_replicas, 0);
        let mut all = status.conditions.into_iter();
        let zero = all.find(|one| one.r#type == "ScaledToZero");
        zero.map(|one| (one.status, one.reason))
    };
    assert_eq!(zero(&world), None);
    Arc::make_mut(&mut world.settings).scale_to_zero = true;
    let expected = ("True".to_owned(), "ScaledToZero".to_owned());
    assert_eq!(zero(&world), Some(expected));
    world.scale = Ok(scale(9));
    let reported = status(&world, &done(&world)).unwrap();
    assert!(conditions(&reported).contains(&("ScaledToZero", "False", "NotScaledToZero")));

    change(&mut world, |autoscaler| autoscaler.status = reported);
    let mut steady = world.clone();
    steady.scale = Ok(scale(2));
    steady.readings = vec![Reading::Values(Ok(vec![1_000]))];
    let kept = status(&steady, &done(&steady)).unwrap();
    assert!(conditions(&kept).contains(&("ScaledToZero", "False", "NotScaledToZero")));

    Arc::make_mut(&mut world.settings).scale_to_zero = false;
    let forgotten = status(&world, &done(&world)).unwrap();
    assert_eq!(
        conditions(&forgotten),
        [("AbleToScale", "True", "SucceededRescale")]
    );
}
