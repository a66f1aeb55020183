//! What ValidatingAdmissionPolicy and MutatingAdmissionPolicy have in common.

use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::admissionregistration::{MatchCondition, MatchResources, ParamKind, Variable};
use setpoint_schema::RESERVED_WORDS;

use super::{FAILURE_POLICIES, rule, validate_dns_1035_label};
use crate::expressions::Compiled;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

pub(super) fn validate_failure_policy(
    policy: Option<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("failurePolicy");
    match policy {
        None => errors.required(&at, ""),
        policy => errors.one_of(&at, policy, FAILURE_POLICIES),
    }
}

pub(super) fn validate_param_kind(
    kind: Option<&ParamKind>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(kind) = kind else { return };
    let (version, at) = (kind.api_version.as_str(), path.field("apiVersion"));
    match version.split('/').collect::<Vec<_>>()[..] {
        [""] => errors.required(&at, ""),
        [version] => validate_version(version, &at, errors),
        [group, version] => {
            let problems = names::validate_dns_subdomain(group);
            if !group.is_empty() && !problems.is_empty() {
                errors.invalid(&at, group, problems.join(","));
            }
            validate_version(version, &at, errors);
        }
        _ => {
            let detail = format!("unexpected GroupVersion string: {version}");
            errors.invalid(&at, version, detail);
        }
    }
    let at = path.field("kind");
    let problems = validate_dns_1035_label(&kind.kind.to_lowercase());
    if kind.kind.is_empty() {
        errors.required(&at, "");
    } else if !problems.is_empty() {
        let problems = problems.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {problems}");
        errors.invalid(&at, &kind.kind, detail);
    }
}

fn validate_version(version: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let problems = validate_dns_1035_label(version);
    if version.is_empty() {
        errors.invalid(path, version, "version must be specified");
    } else if !problems.is_empty() {
        errors.invalid(path, version, problems.join(","));
    }
}

/// Validates the resources of a policy, which must have a rule.
pub(super) fn validate_constraints(
    resources: Option<&MatchResources>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("matchConstraints");
    let Some(resources) = resources else {
        return errors.required(&at, "");
    };
    rule::validate_resources(resources, &at, errors);
    if resources.resource_rules.is_empty() {
        errors.required(&at.field("resourceRules"), "");
    }
}

pub(super) fn validate_variables(
    variables: &[Variable],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, variable) in variables.iter().enumerate() {
        let at = path.index(index);
        let name = variable.name.as_str();
        if name.trim().is_empty() {
            errors.required(&at.field("name"), "name is not specified");
        } else if !is_identifier(name) {
            errors.invalid(
                &at.field("name"),
                name,
                "name is not a valid CEL identifier",
            );
        }
        validate_expression(&variable.expression, &at, errors);
    }
}

fn is_identifier(name: &str) -> bool {
    let plain = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    let digit = name.starts_with(|letter: char| letter.is_ascii_digit());
    name.chars().all(plain) && !digit && !RESERVED_WORDS.contains(&name)
}

pub(super) fn validate_expression(
    expression: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if expression.trim().is_empty() {
        errors.required(&path.field("expression"), "expression is not specified");
    }
}

/// Adds the error of an expression that does not compile. One that is missing has its error.
pub(super) fn report(
    at: &FieldPath<'_>,
    source: &str,
    error: Option<&String>,
    errors: &mut FieldErrors,
) {
    if let Some(error) = error.filter(|_| !source.trim().is_empty()) {
        errors.invalid(&at.field("expression"), source, error.as_str());
    }
}

/// Adds the errors of match conditions that do not compile.
pub(super) fn report_conditions(
    conditions: &[MatchCondition],
    compiled: &[Compiled],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("matchConditions");
    for (index, (condition, compiled)) in conditions.iter().zip(compiled).enumerate() {
        let source = condition.expression.trim();
        report(&at.index(index), source, compiled.as_ref().err(), errors);
    }
}

/// Adds the errors of variables that do not compile.
pub(super) fn report_variables(
    variables: &[Variable],
    found: &[Option<String>],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("variables");
    for (index, (variable, error)) in variables.iter().zip(found).enumerate() {
        report(
            &at.index(index),
            &variable.expression,
            error.as_ref(),
            errors,
        );
    }
}

pub(super) fn param_kind_cell(kind: Option<&ParamKind>) -> Value {
    match kind {
        Some(kind) => format!("{}/{}", kind.api_version, kind.kind).into(),
        None => "<unset>".into(),
    }
}
