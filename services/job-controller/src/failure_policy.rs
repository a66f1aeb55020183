//! The Pod failure policy: what the failure of a Pod means for its Job.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_proto::batch::{
    PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
};

use crate::{JobPodView, JobView};

/// What the failure of a Pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handling {
    /// It counts towards the limits of failures.
    Count,
    /// It does not count.
    Ignore,
    /// It counts, and fails its index.
    FailIndex,
    /// It counts, and fails the Job with this message.
    FailJob(String),
}

/// Returns what the failure of a Pod means, by the first rule that matches.
pub fn handling(job: &JobView, pod: &JobPodView) -> Handling {
    let mut rules = job.failure_rules.iter().enumerate();
    let found = rules.find_map(|(index, rule)| Some((index, rule, matched(rule, pod)?)));
    let Some((index, rule, matched)) = found else {
        return Handling::Count;
    };
    match rule.action.as_str() {
        "Ignore" => Handling::Ignore,
        "FailIndex" => Handling::FailIndex,
        "FailJob" => Handling::FailJob(format!("{matched} matching FailJob rule at index {index}")),
        _ => Handling::Count,
    }
}

/// Returns what a rule matches in the status of a Pod.
fn matched(rule: &PodFailurePolicyRule, pod: &JobPodView) -> Option<String> {
    let key = &pod.base.meta.key;
    match &rule.on_exit_codes {
        Some(codes) => {
            let mut exits = pod.details().exits.iter();
            let (container, code) = exits.find(|(name, code)| has_code(codes, name, *code))?;
            Some(format!(
                "Container {container} for pod {key} failed with exit code {code}"
            ))
        }
        None => {
            let mut conditions = pod.details().conditions.iter();
            let patterns = &rule.on_pod_conditions;
            let (kind, _) = conditions.find(|(kind, status)| has(patterns, kind, status))?;
            Some(format!("Pod {key} has condition {kind}"))
        }
    }
}

fn has_code(rule: &PodFailurePolicyOnExitCodesRequirement, container: &str, code: i32) -> bool {
    let named = rule
        .container_name
        .as_deref()
        .is_none_or(|name| name == container);
    let listed = rule.values.contains(&code);
    match rule.operator.as_str() {
        "In" => named && listed,
        "NotIn" => named && !listed,
        _ => false,
    }
}

fn has(patterns: &[PodFailurePolicyOnPodConditionsPattern], kind: &str, status: &str) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| pattern.r#type == kind && pattern.status == status)
}
