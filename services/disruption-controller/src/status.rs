//! Status: computes how many disruptions a budget allows.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use setpoint_controller::Plan;
use setpoint_model::{condition, percent};
use setpoint_proto::meta::{Condition, Time};
use setpoint_proto::policy::PodDisruptionBudgetStatus;
use setpoint_workload::{PodView, count, saturate};

use crate::{Rule, World};

/// The time in which the deletion of an evicted Pod is expected; then it counts again.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);
/// The delay after which scales that could not be read are read again.
const RETRY: Duration = Duration::from_secs(15);
const ALLOWED: &str = "DisruptionAllowed";
const UNMANAGED: &str = "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.";

/// Returns when to look again: nothing else reports that the deletion of an evicted Pod is overdue, or that a scale can
/// be read again.
pub fn plan(world: &World) -> Plan<Infallible> {
    let mut plan = Plan::default();
    let overdue = disrupted(world)
        .values()
        .map(|since| left(since, world.now))
        .min();
    let retry = world.scales.is_err().then_some(RETRY);
    for wait in overdue.into_iter().chain(retry) {
        plan.look_again(wait);
    }
    plan
}

/// Returns the status that must be written; `None` if it has not changed. If the expected Pods cannot be computed, the
/// budget allows no disruption.
pub fn status(world: &World) -> Option<PodDisruptionBudgetStatus> {
    let reported = &world.budget.status;
    let status = match expected(world) {
        Ok((expected, desired)) => counted(world, expected, desired),
        Err(error) => refusing(world, error),
    };
    (status != *reported).then_some(status)
}

/// Returns the reason and message of the Event about what keeps the status from being exact, in upstream's words.
pub fn warning(world: &World) -> Option<(&'static str, String)> {
    match &world.scales {
        Ok(scales) => scales
            .unmanaged
            .then(|| ("UnmanagedPods", UNMANAGED.to_owned())),
        Err(error) => {
            let message = format!("Failed to calculate the number of expected pods: {error}");
            Some(("CalculateExpectedPodCountFailed", message))
        }
    }
}

/// Returns the expected and the desired healthy Pods.
fn expected(world: &World) -> Result<(i32, i32), String> {
    let part = |of, total| percent::resolve(of, total, true).map_err(|error| error.to_string());
    let scales = world.scales.clone()?;
    Ok(match &world.budget.rule {
        Rule::MinAvailable(number) => (saturate(world.pods.len()), *number),
        Rule::MinAvailablePart(least) => (scales.replicas, part(least, scales.replicas)?),
        Rule::MaxUnavailable(most) => {
            let unavailable = part(most, scales.replicas)?;
            let desired = scales.replicas.saturating_sub(unavailable).max(0);
            (scales.replicas, desired)
        }
        Rule::Unset => (0, 0),
    })
}

fn counted(world: &World, expected: i32, desired: i32) -> PodDisruptionBudgetStatus {
    let disrupted = disrupted(world);
    let is_healthy = |pod: &&PodView| {
        pod.ready_since.is_some()
            && !pod.meta.deleting
            && !disrupted.contains_key(&pod.meta.key.name)
    };
    let pods = world.pods.iter().map(|pod| &**pod);
    let healthy = count(pods.filter(is_healthy));
    let allowed = match expected {
        // The first Pods of a budget that has none yet are protected before they are counted.
        ..=0 => 0,
        _ => healthy.saturating_sub(desired).max(0),
    };
    let mut status = PodDisruptionBudgetStatus {
        observed_generation: world.budget.meta.generation,
        disruptions_allowed: allowed,
        current_healthy: healthy,
        desired_healthy: desired,
        expected_pods: expected,
        disrupted_pods: disrupted,
        conditions: world.budget.status.conditions.clone(),
    };
    let (allows, reason) = match allowed {
        0 => (condition::FALSE, "InsufficientPods"),
        _ => (condition::TRUE, "SufficientPods"),
    };
    set_condition(&mut status, allows, reason, String::new(), world.now);
    status
}

/// Returns the last status, but one that allows no disruption.
fn refusing(world: &World, error: String) -> PodDisruptionBudgetStatus {
    let mut status = world.budget.status.clone();
    status.disruptions_allowed = 0;
    set_condition(
        &mut status,
        condition::FALSE,
        "SyncFailed",
        error,
        world.now,
    );
    status
}

fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    allows: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let allowed = Condition {
        r#type: ALLOWED.to_owned(),
        status: allows.to_owned(),
        observed_generation: status.observed_generation,
        last_transition_time: now.into(),
        reason: reason.to_owned(),
        message,
    };
    condition::set(&mut status.conditions, allowed);
}

/// Returns the evicted Pods whose deletion is still expected, with the times of their evictions.
fn disrupted(world: &World) -> BTreeMap<String, Time> {
    let evicted = &world.budget.status.disrupted_pods;
    let pods = world.pods.iter().filter(|pod| !pod.meta.deleting);
    let listed = pods.filter_map(|pod| evicted.get_key_value(&pod.meta.key.name));
    listed
        .filter(|(_, since)| !left(since, world.now).is_zero())
        .map(|(name, since)| (name.clone(), *since))
        .collect()
}

/// Returns the time left for the deletion of a Pod that was evicted at `since`.
fn left(since: &Time, now: Timestamp) -> Duration {
    let evicted = since.timestamp().unwrap_or(Timestamp::MIN);
    let elapsed = now.duration_since(evicted).max(SignedDuration::ZERO);
    DELETION_TIMEOUT.saturating_sub(elapsed.unsigned_abs())
}
