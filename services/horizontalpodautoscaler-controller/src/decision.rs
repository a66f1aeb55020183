//! The decision: whether to change the replicas, and what to report.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_model::condition;
use setpoint_proto::autoscaling_v2::MetricStatus;

use crate::computed::{Computed, compute};
use crate::{InvalidSelector, ScaleView, World};

pub(crate) const ABLE_TO_SCALE: &str = "AbleToScale";
pub(crate) const SCALING_ACTIVE: &str = "ScalingActive";
const SCALING_LIMITED: &str = "ScalingLimited";
pub(crate) const SCALED_TO_ZERO: &str = "ScaledToZero";

/// What a world asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The change of the replicas.
    pub rescale: Option<Rescale>,
    /// The replicas that the target is set to; `None` if they are not known.
    pub current: Option<i32>,
    /// Whether the replicas should be those that the status has, since none could be computed.
    pub failed: bool,
    /// The metrics of the status.
    pub metrics: Vec<MetricStatus>,
    /// The conditions that hold or not; the others stay.
    pub conditions: Vec<Reported>,
    /// The warnings, by reason and message.
    pub warnings: Vec<(&'static str, String)>,
    /// The recommendation before stabilization, for the history.
    pub recommendation: Option<i32>,
    /// Whether the condition `ScaledToZero` is removed.
    pub forgets_zero: bool,
}

/// A change of the replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescale {
    /// The replicas to set.
    pub to: i32,
    /// The reason in the Event.
    pub reason: String,
    /// The reason as a phrase.
    pub because: &'static str,
}

/// A condition without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The type.
    pub kind: &'static str,
    /// `True` or `False`.
    pub status: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

impl Decision {
    /// Sets a condition, or replaces the one of its type.
    pub(crate) fn report(
        &mut self,
        kind: &'static str,
        holds: bool,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let status = if holds {
            condition::TRUE
        } else {
            condition::FALSE
        };
        let message = message.into();
        self.conditions.retain(|known| known.kind != kind);
        self.conditions.push(Reported {
            kind,
            status,
            reason,
            message,
        });
    }

    fn warn(&mut self, reason: &'static str, message: impl Into<String>) {
        self.warnings.push((reason, message.into()));
    }

    /// Ends without replicas.
    fn fail(&mut self) {
        self.failed = true;
    }
}

/// What the replicas of a target ask for before any metric is looked at.
enum Stage {
    /// The target was set to no replicas by a user.
    Disabled,
    /// The replicas are outside of the bounds.
    OutOfBounds(Rescale),
    /// The metrics decide.
    Metrics,
}

/// Returns whether the metrics of a world decide, and so have to be read.
pub(crate) fn needs_metrics(world: &World, scale: &ScaleView) -> bool {
    matches!(stage(world, scale), Stage::Metrics)
}

/// Decides. Pure; a repetition gives the same decision.
pub fn decide(world: &World) -> Decision {
    let mut decision = Decision::default();
    match &world.scale {
        Err(error) => {
            decision.warn("FailedGetScale", error);
            let message =
                format!("the HPA controller was unable to get the target's current scale: {error}");
            decision.report(ABLE_TO_SCALE, false, "FailedGetScale", message);
            decision.fail();
        }
        Ok(scale) => {
            decision.current = Some(scale.replicas());
            decision.report(
                ABLE_TO_SCALE,
                true,
                "SucceededGetScale",
                "the HPA controller was able to get the target's current scale",
            );
            match stage(world, scale) {
                Stage::Disabled => disabled(&mut decision, world),
                Stage::OutOfBounds(rescale) => decision.rescale = Some(rescale),
                Stage::Metrics => by_metrics(&mut decision, world, scale),
            }
        }
    }
    decision
}

fn stage(world: &World, scale: &ScaleView) -> Stage {
    let (spec, current) = (&world.autoscaler.spec, scale.replicas());
    let bounds = |to, reason: &str, because| {
        let reason = reason.to_owned();
        Stage::OutOfBounds(Rescale {
            to,
            reason,
            because,
        })
    };
    if current == 0 {
        let may_return = spec.min != 0 || spec.has_metrics_without_pods();
        return match was_scaled_to_zero(world) && may_return {
            true => Stage::Metrics,
            false => Stage::Disabled,
        };
    }
    if current > spec.max {
        return bounds(spec.max, ABOVE_MAX, "more replicas than the maximum");
    }
    if current < spec.min {
        return bounds(spec.min, BELOW_MIN, "fewer replicas than the minimum");
    }
    Stage::Metrics
}

const ABOVE_MAX: &str = "Current number of replicas above Spec.MaxReplicas";
const BELOW_MIN: &str = "Current number of replicas below Spec.MinReplicas";

/// Returns whether the target has no replicas because an autoscaler removed them, not a user.
fn was_scaled_to_zero(world: &World) -> bool {
    let conditions = &world.autoscaler.status.conditions;
    world.settings.scale_to_zero && condition::is_true(conditions, SCALED_TO_ZERO)
}

fn disabled(decision: &mut Decision, world: &World) {
    decision.report(
        SCALING_ACTIVE,
        false,
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
    );
    decision.forgets_zero = !world.settings.scale_to_zero;
}

fn by_metrics(decision: &mut Decision, world: &World, scale: &ScaleView) {
    if let Err(message) = check_selector(decision, world, scale) {
        decision.warn("FailedComputeMetricsReplicas", message);
        return decision.fail();
    }
    let computed = compute(world, scale);
    for failure in &computed.failures {
        decision.warn(failure.reason, &failure.message);
    }
    match &computed.proposal {
        None => failed(decision, &computed),
        Some((desired, metric)) => {
            let message =
                format!("the HPA was able to successfully calculate a replica count from {metric}");
            decision.report(SCALING_ACTIVE, true, "ValidMetricFound", message);
            propose(decision, world, scale, (*desired).max(0), metric);
        }
    }
    decision.metrics = computed.statuses;
}

fn failed(decision: &mut Decision, computed: &Computed) {
    if let (Some(first), Some(error)) = (computed.failures.first(), computed.error()) {
        let message = format!(
            "the HPA was unable to compute the replica count: {}",
            first.message
        );
        decision.report(SCALING_ACTIVE, false, first.reason, message);
        decision.warn("FailedComputeMetricsReplicas", error);
    }
    decision.fail();
}

/// Checks that the target selects Pods that no other autoscaler scales.
fn check_selector(decision: &mut Decision, world: &World, scale: &ScaleView) -> Result<(), String> {
    match scale.selector() {
        Ok(_) => {}
        Err(InvalidSelector::Missing) => {
            let event = "selector is required";
            decision.warn("SelectorRequired", event);
            let message = "the HPA target's scale is missing a selector";
            decision.report(SCALING_ACTIVE, false, "InvalidSelector", message);
            return Err(event.to_owned());
        }
        Err(InvalidSelector::Malformed(message)) => {
            decision.warn("InvalidSelector", &message);
            decision.report(SCALING_ACTIVE, false, "InvalidSelector", &message);
            return Err(message);
        }
    }
    let rivals = rivals(world);
    if rivals.len() < 2 {
        return Ok(());
    }
    let message = format!(
        "pods by selector {} are controlled by multiple HPAs: [{}]",
        scale.scale.status.selector,
        rivals.join(" ")
    );
    decision.warn("AmbiguousSelector", &message);
    decision.report(SCALING_ACTIVE, false, "AmbiguousSelector", &message);
    Err(message)
}

/// Returns the autoscalers that select a Pod of the target, its own included, as upstream prints them.
fn rivals(world: &World) -> Vec<String> {
    let selects = |(_, selector): &&(_, std::sync::Arc<setpoint_model::Selector>)| {
        world.pods.iter().any(|pod| selector.matches(&pod.labels))
    };
    let others = world.rivals.iter().filter(selects).map(|(key, _)| key);
    let all = others.chain([&world.autoscaler.meta.key]);
    let mut names: Vec<_> = all
        .map(|key| format!("{{{} {}}}", key.name, key.namespace))
        .collect();
    names.sort();
    names
}

/// Applies the limits to what the metrics ask for.
fn propose(decision: &mut Decision, world: &World, scale: &ScaleView, desired: i32, metric: &str) {
    let current = scale.replicas();
    let limits = world.limits(current);
    let stabilized = limits.stabilize(desired);
    decision.report(ABLE_TO_SCALE, true, stabilized.reason, stabilized.message);
    let limited = limits.limit(stabilized.replicas);
    decision.report(
        SCALING_LIMITED,
        limited.limited,
        limited.reason,
        limited.message,
    );
    decision.recommendation = Some(desired);
    let (mut to, mut reason) = (limited.replicas, reason(desired, current, metric));
    // A minimum that was raised brings a target back that was scaled to zero.
    if current == 0 {
        to = to.max(world.autoscaler.spec.min);
        if reason.is_empty() {
            reason = BELOW_MIN.to_owned();
        }
    }
    if to != current {
        let because = match to > current {
            true => "the metrics ask for more replicas",
            false => "the metrics ask for fewer replicas",
        };
        decision.rescale = Some(Rescale {
            to,
            reason,
            because,
        });
    }
}

/// Returns the reason in the Event; as upstream, it is that of the recommendation, not of the limits.
fn reason(desired: i32, current: i32, metric: &str) -> String {
    match desired.cmp(&current) {
        std::cmp::Ordering::Greater => format!("{metric} above target"),
        std::cmp::Ordering::Less => "All metrics below target".to_owned(),
        std::cmp::Ordering::Equal => String::new(),
    }
}
