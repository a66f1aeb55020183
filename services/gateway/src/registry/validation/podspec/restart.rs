//! When a container is restarted, if it says so itself.

use setpoint_proto::core::{Container, ContainerRestartRule};

use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const RULES_MAX: usize = 20;
const CODES_MAX: usize = 255;

/// Finds what is wrong with a container's own restart policy.
pub fn validate(container: &Container, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("restartPolicy");
    match container.restart_policy.as_deref() {
        None if !container.restart_policy_rules.is_empty() => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.required(&at, detail);
        }
        Some(policy) if !POLICIES.contains(&policy) => {
            errors.unsupported(&at, policy, POLICIES);
        }
        _ => {}
    }
    let rules = path.field("restartPolicyRules");
    errors.at_most(&rules, container.restart_policy_rules.len(), RULES_MAX);
    for (index, rule) in container.restart_policy_rules.iter().enumerate() {
        validate_rule(rule, &rules.index(index), errors);
    }
}

fn validate_rule(rule: &ContainerRestartRule, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !ACTIONS.contains(&rule.action.as_str()) {
        errors.unsupported(&path.field("action"), &rule.action, ACTIONS);
    }
    let at = path.field("exitCodes");
    let Some(codes) = &rule.exit_codes else {
        errors.required(&at, "must be specified");
        return;
    };
    if !OPERATORS.contains(&codes.operator.as_str()) {
        errors.unsupported(&at.field("operator"), &codes.operator, OPERATORS);
    }
    errors.at_most(&at.field("values"), codes.values.len(), CODES_MAX);
}
