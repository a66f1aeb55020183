//! Status: computes the status of an autoscaler.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Outcome;
use setpoint_model::condition;
use setpoint_proto::autoscaling_v2::{
    HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus,
};

use crate::act::is_overtaken;
use crate::decision::{ABLE_TO_SCALE, SCALED_TO_ZERO};
use crate::{Action, Decision, World, decide};

/// Returns the status that must be written; `None` if it has not changed, or if the next reconcile knows it better
/// because the target has changed.
pub fn status(world: &World, outcome: &Outcome<Action>) -> Option<HorizontalPodAutoscalerStatus> {
    if world.autoscaler.meta.deleting || outcome.failed.as_ref().is_some_and(is_overtaken) {
        return None;
    }
    let old = &world.autoscaler.status;
    let mut decision = decide(world);
    settle(&mut decision, world, outcome);
    let mut status = old.clone();
    if let Some(current) = decision.current {
        status.current_replicas = current;
        status.desired_replicas = desired(&decision, old.desired_replicas, current);
        status.current_metrics.clone_from(&decision.metrics);
        let last = world.history.last_scale();
        status.last_scale_time = last.map(Into::into).or(old.last_scale_time);
    }
    if decision.rescale.is_some() {
        status.last_scale_time = Some(world.now.into());
    }
    // The gateway does not count generations of autoscalers, as upstream.
    let generation = world.autoscaler.meta.generation;
    status.observed_generation = (generation > 0).then_some(generation);
    report(&mut status.conditions, &decision, world);
    (status != *old).then_some(status)
}

/// Adds the outcome of the change to the decision. A change that failed is none.
fn settle(decision: &mut Decision, world: &World, outcome: &Outcome<Action>) {
    let Some(rescale) = &decision.rescale else {
        return;
    };
    let to = rescale.to;
    if let Some(error) = &outcome.failed {
        decision.rescale = None;
        decision.failed = true;
        let message = format!("the HPA controller was unable to update the target scale: {error}");
        return decision.report(ABLE_TO_SCALE, false, "FailedUpdateScale", message);
    }
    let message = format!("the HPA controller was able to update the target scale to {to}");
    decision.report(ABLE_TO_SCALE, true, "SucceededRescale", message);
    if !world.settings.scale_to_zero {
        decision.forgets_zero = true;
        return;
    }
    let spec = &world.autoscaler.spec;
    match to == 0 && spec.min == 0 && spec.has_metrics_without_pods() {
        true => decision.report(
            SCALED_TO_ZERO,
            true,
            "ScaledToZero",
            "the HPA controller scaled the workload to zero",
        ),
        false => decision.report(
            SCALED_TO_ZERO,
            false,
            "NotScaledToZero",
            "the HPA controller did not scale the workload to zero",
        ),
    }
}

fn desired(decision: &Decision, old: i32, current: i32) -> i32 {
    match &decision.rescale {
        Some(rescale) => rescale.to,
        None if decision.failed => old,
        None => current,
    }
}

fn report(
    conditions: &mut Vec<HorizontalPodAutoscalerCondition>,
    decision: &Decision,
    world: &World,
) {
    if decision.forgets_zero {
        conditions.retain(|condition| condition.r#type != SCALED_TO_ZERO);
    }
    for reported in &decision.conditions {
        let condition = HorizontalPodAutoscalerCondition {
            r#type: reported.kind.to_owned(),
            status: reported.status.to_owned(),
            reason: reported.reason.to_owned(),
            message: reported.message.clone(),
            last_transition_time: world.now.into(),
            ..Default::default()
        };
        condition::set(conditions, condition);
    }
}
