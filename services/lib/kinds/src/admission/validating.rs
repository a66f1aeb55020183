//! ValidatingAdmissionPolicy, whose expressions (CEL) accept or reject requests.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::admissionregistration::{
    AuditAnnotation, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec, Validation,
};

use super::policy::{
    param_kind_cell, report_conditions, report_variables, validate_constraints,
    validate_expression, validate_failure_policy, validate_param_kind, validate_variables,
};
use super::{rule, validate_conditions, warn_of_name};
use crate::expressions::{Compiled, Types, compile};
use crate::validation::conditions;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;
use crate::{Paths, StoredKind, status};

const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MOST_ANNOTATIONS: usize = 20;
/// The largest length of an expression of an audit annotation, in bytes.
const LONGEST_ANNOTATION: usize = 5 * 1024;

impl StoredKind for ValidatingAdmissionPolicy {
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    status::status_items!();

    fn fill_defaults(&mut self) {
        let policy = &mut self.spec.failure_policy;
        policy.get_or_insert_with(|| "Fail".into());
        rule::fill_resources(self.spec.match_constraints.as_mut());
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (spec, path) = (&self.spec, FieldPath::root("spec"));
        validate_failure_policy(spec.failure_policy.as_deref(), &path, errors);
        validate_param_kind(spec.param_kind.as_ref(), &path.field("paramKind"), errors);
        validate_constraints(spec.match_constraints.as_ref(), &path, errors);
        let at = path.field("matchConditions");
        validate_conditions(&spec.match_conditions, &at, errors);
        validate_variables(&spec.variables, &path.field("variables"), errors);
        let (validations, annotations) = (&spec.validations, &spec.audit_annotations);
        let (at, notes) = (path.field("validations"), path.field("auditAnnotations"));
        if validations.is_empty() && annotations.is_empty() {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.required(&at, detail);
            errors.required(&notes, detail);
        }
        for (index, validation) in validations.iter().enumerate() {
            validate_validation(validation, &at.index(index), errors);
        }
        validate_annotations(annotations, &self.metadata.name, &notes, errors);
        validate_expressions(spec, &path, errors);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let (status, path) = (&self.status, FieldPath::root("status"));
        let checking = status.type_checking.as_ref();
        let warnings = checking.map(|checking| &checking.expression_warnings);
        let at = path.field("typeChecking");
        let at = at.field("expressionWarnings");
        for (index, warning) in warnings.into_iter().flatten().enumerate() {
            let at = at.index(index);
            errors.not_empty(&at.field("warning"), &warning.warning);
            errors.not_empty(&at.field("fieldRef"), warning.field_ref.trim());
        }
        conditions::validate(&status.conditions, &path.field("conditions"), errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        warn_of_name(&self.metadata.name, warnings);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "Validations" => self.spec.validations.len().into(),
            "ParamKind" => param_kind_cell(self.spec.param_kind.as_ref()),
            _ => return None,
        })
    }
}

fn validate_validation(validation: &Validation, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    const EMPTY: &str = "must be non-empty if specified";
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    validate_expression(&validation.expression, path, errors);
    let text = &validation.message_expression;
    if is_blank(text) {
        errors.invalid(&path.field("messageExpression"), text, EMPTY);
    }
    let (text, at) = (&validation.message, path.field("message"));
    if is_blank(text) {
        errors.invalid(&at, text, EMPTY);
    } else if text.trim().contains(['\n', '\r']) {
        errors.invalid(&at, text, "must not contain line breaks");
    }
    errors.one_of(&path.field("reason"), validation.reason.as_deref(), REASONS);
}

fn validate_annotations(
    annotations: &[AuditAnnotation],
    policy: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if annotations.len() > MOST_ANNOTATIONS {
        let detail = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        errors.invalid(path, annotations, detail);
    }
    for (index, annotation) in annotations.iter().enumerate() {
        let (at, key) = (path.index(index), &annotation.key);
        match policy {
            "" => {
                let detail = "requires metadata.name be non-empty";
                errors.invalid(&at.field("key"), key, detail);
            }
            policy => {
                let name = format!("{policy}/{key}");
                errors.check(&at.field("key"), &name, names::validate_qualified_name);
            }
        }
        let (expression, value) = (
            annotation.value_expression.trim(),
            at.field("valueExpression"),
        );
        if expression.is_empty() {
            errors.required(&value, "valueExpression is not specified");
        } else if expression.len() > LONGEST_ANNOTATION {
            let detail = format!("must not exceed {LONGEST_ANNOTATION} bytes in length");
            errors.required(&value, &detail);
        }
        if annotations[..index].iter().any(|one| one.key == *key) {
            errors.duplicate(&at.field("key"), key);
        }
    }
}

/// Compiles the expressions. Those that are missing have their errors.
fn validate_expressions(
    spec: &ValidatingAdmissionPolicySpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let compiled = match compile(spec, Types::default()) {
        Ok(compiled) => compiled,
        Err(error) => return errors.invalid(path, "", error),
    };
    report_conditions(&spec.match_conditions, &compiled.conditions, path, errors);
    report_variables(&spec.variables, &compiled.variable_errors, path, errors);
    let mut check = |at: &FieldPath<'_>, source: &str, error: Option<&String>| {
        if let Some(error) = error.filter(|_| !source.trim().is_empty()) {
            errors.invalid(at, source, error.as_str());
        }
    };
    let error = |compiled: &'_ Compiled| compiled.as_ref().err().cloned();
    let at = path.field("validations");
    for (index, validation) in spec.validations.iter().enumerate() {
        let at = at.index(index);
        let failed = compiled.validations.get(index).and_then(error);
        check(
            &at.field("expression"),
            &validation.expression,
            failed.as_ref(),
        );
        let failed = compiled.messages.get(index).and_then(Option::as_ref);
        let (source, failed) = (&validation.message_expression, failed.and_then(error));
        check(&at.field("messageExpression"), source, failed.as_ref());
    }
    let at = path.field("auditAnnotations");
    for (index, annotation) in spec.audit_annotations.iter().enumerate() {
        let fits = annotation.value_expression.trim().len() <= LONGEST_ANNOTATION;
        let failed = compiled.annotations.get(index).and_then(error);
        let at = at.index(index);
        let failed = failed.filter(|_| fits);
        check(
            &at.field("valueExpression"),
            &annotation.value_expression,
            failed.as_ref(),
        );
    }
}
