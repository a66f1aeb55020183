//! MutatingAdmissionPolicy, whose expressions (CEL) change objects before they are stored.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::admissionregistration::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicySpec, Mutation,
};

use super::policy::{
    param_kind_cell, report, report_conditions, report_variables, validate_constraints,
    validate_failure_policy, validate_param_kind, validate_variables,
};
use super::{REINVOCATION_POLICIES, rule, validate_conditions, warn_of_name};
use crate::StoredKind;
use crate::expressions::compile_mutations;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

const PATCH_TYPES: &[&str] = &["ApplyConfiguration", "JSONPatch"];

impl StoredKind for MutatingAdmissionPolicy {
    const COUNTS_GENERATIONS: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        let policy = &mut self.spec.failure_policy;
        policy.get_or_insert_with(|| "Fail".into());
        rule::fill_resources(self.spec.match_constraints.as_mut());
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (spec, path) = (&self.spec, FieldPath::root("spec"));
        validate_failure_policy(spec.failure_policy.as_deref(), &path, errors);
        validate_param_kind(spec.param_kind.as_ref(), &path.field("paramKind"), errors);
        validate_constraints(spec.match_constraints.as_ref(), &path, errors);
        if let Some(resources) = &spec.match_constraints {
            rule::validate_mutable(resources, &path.field("matchConstraints"), errors);
        }
        let at = path.field("matchConditions");
        validate_conditions(&spec.match_conditions, &at, errors);
        validate_variables(&spec.variables, &path.field("variables"), errors);
        let at = path.field("mutations");
        if spec.mutations.is_empty() {
            errors.required(&at, "mutations must contain at least one item");
        }
        for (index, mutation) in spec.mutations.iter().enumerate() {
            validate_mutation(mutation, &at.index(index), errors);
        }
        let at = path.field("reinvocationPolicy");
        match spec.reinvocation_policy.as_str() {
            "" => errors.required(&at, ""),
            policy => errors.one_of(&at, policy, REINVOCATION_POLICIES),
        }
        validate_expressions(spec, &path, errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        warn_of_name(&self.metadata.name, warnings);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "Mutations" => self.spec.mutations.len().into(),
            "ParamKind" => param_kind_cell(self.spec.param_kind.as_ref()),
            _ => return None,
        })
    }
}

fn validate_mutation(mutation: &Mutation, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let kind = mutation.patch_type.as_str();
    let at = path.field("patchType");
    match kind {
        "" => return errors.required(&at, ""),
        kind if !PATCH_TYPES.contains(&kind) => return errors.unsupported(&at, kind, PATCH_TYPES),
        _ => {}
    }
    let apply = mutation.apply_configuration.as_ref();
    let json = mutation.json_patch.as_ref();
    for (own, field, expression) in [
        (
            "ApplyConfiguration",
            "applyConfiguration",
            apply.map(|one| &one.expression),
        ),
        ("JSONPatch", "jsonPatch", json.map(|one| &one.expression)),
    ] {
        let at = path.field(field);
        match (own == kind, expression) {
            (true, None) => {
                errors.required(&at, &format!("must be specified when patchType is {kind}"));
            }
            (true, Some(expression)) => {
                errors.not_empty(&at.field("expression"), expression.trim());
            }
            (false, Some(_)) => {
                let detail = format!("must not be specified when patchType is {kind}");
                errors.invalid(&at, format!("{{{field}}}"), detail);
            }
            (false, None) => {}
        }
    }
}

/// Compiles the expressions.
fn validate_expressions(
    spec: &MutatingAdmissionPolicySpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let compiled = match compile_mutations(spec) {
        Ok(compiled) => compiled,
        Err(error) => return errors.invalid(path, "", error),
    };
    report_conditions(&spec.match_conditions, &compiled.conditions, path, errors);
    report_variables(&spec.variables, &compiled.variable_errors, path, errors);
    let at = path.field("mutations");
    for (index, (mutation, patch)) in spec.mutations.iter().zip(&compiled.patches).enumerate() {
        let at = at.index(index);
        let (field, source) = match mutation.patch_type.as_str() {
            "JSONPatch" => (
                "jsonPatch",
                mutation.json_patch.as_ref().map(|one| &one.expression),
            ),
            "ApplyConfiguration" => (
                "applyConfiguration",
                mutation
                    .apply_configuration
                    .as_ref()
                    .map(|one| &one.expression),
            ),
            _ => continue,
        };
        let source = source.map_or("", |source| source.trim());
        report(
            &at.field(field),
            source,
            patch.expression.as_ref().err(),
            errors,
        );
    }
}
