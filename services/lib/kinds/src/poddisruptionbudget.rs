//! PodDisruptionBudget: how many Pods must stay, and the evictions that it allows.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::{condition, names};
use setpoint_proto::meta::{Condition, IntOrString, StatusCause, StatusDetails};
use setpoint_proto::policy::PodDisruptionBudget;
use setpoint_proto::{ApiError, Reason};

use super::{StoredKind, status};
use crate::validation::amount::{self, Amount};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::{conditions, label_selector};

const POLICIES: &[&str] = &["AlwaysAllow", "IfHealthyBudget"];
/// The number of evicted Pods that the controller has not yet seen, above which there are no more evictions.
const MAX_DISRUPTED: usize = 2000;
const ALLOWED: &str = "DisruptionAllowed";

impl StoredKind for PodDisruptionBudget {
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    status::status_items!();

    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            let detail = "minAvailable and maxUnavailable cannot be both set";
            errors.invalid(&path, spec, detail);
        }
        for (field, value) in [
            ("minAvailable", &spec.min_available),
            ("maxUnavailable", &spec.max_unavailable),
        ] {
            let path = path.field(field);
            if let Some(value) = value {
                Amount::validate(value, &path, errors);
                amount::validate_percentage(value, &path, errors);
            }
        }
        label_selector::validate(spec.selector.as_ref(), &path.field("selector"), errors);
        let policy = spec.unhealthy_pod_eviction_policy.as_deref();
        errors.one_of(&path.field("unhealthyPodEvictionPolicy"), policy, POLICIES);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        conditions::validate(&status.conditions, &path.field("conditions"), errors);
        for (field, count) in [
            ("disruptionsAllowed", status.disruptions_allowed),
            ("currentHealthy", status.current_healthy),
            ("desiredHealthy", status.desired_healthy),
            ("expectedPods", status.expected_pods),
        ] {
            errors.non_negative(&path.field(field), count);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        match column {
            "Min Available" => Some(amount_cell(self.spec.min_available.as_ref())),
            "Max Unavailable" => Some(amount_cell(self.spec.max_unavailable.as_ref())),
            _ => None,
        }
    }
}

fn amount_cell(amount: Option<&IntOrString>) -> Value {
    match amount.map(|amount| (amount.as_str(), amount.int_val)) {
        None => "N/A".into(),
        Some((Some(text), _)) => text.into(),
        Some((None, number)) => number.to_string().into(),
    }
}

/// Returns whether a Pod that is not ready may be evicted without using up a disruption.
pub fn ignores_unready(budget: &PodDisruptionBudget) -> bool {
    let status = &budget.status;
    let healthy = status.current_healthy >= status.desired_healthy && status.desired_healthy > 0;
    budget.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow") || healthy
}

/// Uses up a disruption for a Pod, and records the Pod, so that the controller no longer counts it.
///
/// # Errors
/// `TooManyRequests` if the budget does not allow a disruption, or its controller has not seen its newest version.
pub fn disrupt(
    budget: &mut PodDisruptionBudget,
    pod: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    check(budget)?;
    let status = &mut budget.status;
    status.disruptions_allowed = status.disruptions_allowed.saturating_sub(1);
    status.disrupted_pods.insert(pod.to_owned(), now.into());
    if status.disruptions_allowed == 0 {
        let none_left = Condition {
            r#type: ALLOWED.into(),
            status: condition::FALSE.into(),
            reason: "InsufficientPods".into(),
            observed_generation: status.observed_generation,
            last_transition_time: now.into(),
            ..Default::default()
        };
        condition::set(&mut status.conditions, none_left);
    }
    Ok(())
}

fn check(budget: &PodDisruptionBudget) -> Result<(), ApiError> {
    let (name, status) = (&budget.metadata.name, &budget.status);
    if status.observed_generation < budget.metadata.generation {
        return Err(still_processed(name));
    }
    if status.disruptions_allowed < 0 {
        return Err(forbidden(name, "pdb disruptions allowed is negative"));
    }
    if status.disrupted_pods.len() > MAX_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(name, why));
    }
    match status.disruptions_allowed {
        0 => Err(too_many(why_none(budget), 0)),
        _ => Ok(()),
    }
}

/// Returns the reason why a budget allows no disruption.
fn why_none(budget: &PodDisruptionBudget) -> String {
    let (name, status) = (&budget.metadata.name, &budget.status);
    let (wanted, healthy) = (status.desired_healthy, status.current_healthy);
    let denied = condition::get(&status.conditions, ALLOWED)
        .filter(|denied| denied.status == condition::FALSE && !denied.message.is_empty());
    match denied {
        Some(failed) if failed.reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            failed.message
        ),
        _ if healthy <= wanted => {
            format!(
                "The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
            )
        }
        Some(denied) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            denied.reason, denied.message
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Returns the error of an eviction that can be retried when the controller has processed the budget.
pub fn still_processed(name: &str) -> ApiError {
    let message = format!("The disruption budget {name} is still being processed by the server.");
    too_many(message, 10)
}

fn too_many(why: String, retry_after_seconds: i32) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ApiError::new(Reason::TooManyRequests, message).with_details(StatusDetails {
        retry_after_seconds,
        causes: vec![StatusCause {
            reason: "DisruptionBudget".into(),
            message: why,
            ..Default::default()
        }],
        ..Default::default()
    })
}

fn forbidden(name: &str, why: &str) -> ApiError {
    let message = format!("poddisruptionbudget.policy {name:?} is forbidden: {why}");
    ApiError::new(Reason::Forbidden, message).with_details(StatusDetails {
        name: name.to_owned(),
        group: "policy".into(),
        kind: "poddisruptionbudget".into(),
        ..Default::default()
    })
}
