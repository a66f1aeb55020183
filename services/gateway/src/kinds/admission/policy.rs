//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy, whose expressions (CEL) accept, reject or change requests, and their
//! bindings. The expressions are not compiled.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::admissionregistration::{
    AuditAnnotation, MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    Mutation, ParamKind, ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    Validation, Variable,
};
use setpoint_proto::meta::Condition;

use super::{
    FAILURE_POLICIES, REINVOCATION_POLICIES, rule, validate_conditions, validate_dns_1035_label,
};
use crate::kinds::{Paths, StoredKind};
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;
use crate::registry::validation::label_selector;

const NO_EFFECT: &str = "the policy has no effect: the gateway does not evaluate it";
const NO_EFFECT_OF_BINDING: &str =
    "the binding has no effect: the gateway does not evaluate policies";
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const PATCH_TYPES: &[&str] = &["ApplyConfiguration", "JSONPatch"];
const NOT_FOUND_ACTIONS: &[&str] = &["Deny", "Allow"];
const MOST_ANNOTATIONS: usize = 20;
/// The largest length of an expression of an audit annotation, in bytes.
const LONGEST_ANNOTATION: usize = 5 * 1024;
/// Words that cannot name a variable.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl StoredKind for ValidatingAdmissionPolicy {
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];
    const COUNTS_GENERATIONS: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        let policy = &mut self.spec.failure_policy;
        policy.get_or_insert_with(|| "Fail".into());
        rule::fill_resources(self.spec.match_constraints.as_mut());
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
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
        validate_status_conditions(&status.conditions, &path.field("conditions"), errors);
    }

    fn warnings(&self) -> Vec<String> {
        vec![NO_EFFECT.into()]
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "Validations" => self.spec.validations.len().into(),
            "ParamKind" => param_kind_cell(self.spec.param_kind.as_ref()),
            _ => return None,
        })
    }
}

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
    }

    fn warnings(&self) -> Vec<String> {
        vec![NO_EFFECT.into()]
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "Mutations" => self.spec.mutations.len().into(),
            "ParamKind" => param_kind_cell(self.spec.param_kind.as_ref()),
            _ => return None,
        })
    }
}

/// The items of [`StoredKind`] of a binding; `$validate` validates what only one of the two kinds has.
macro_rules! binding_items {
    ($validate:expr) => {
        const COUNTS_GENERATIONS: bool = true;
        const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

        fn fill_defaults(&mut self) {
            rule::fill_resources(self.spec.match_resources.as_mut());
        }

        fn intent_changed(&self, old: &Self) -> bool {
            self.spec != old.spec
        }

        fn validate(&self, errors: &mut FieldErrors) {
            let (spec, path) = (&self.spec, FieldPath::root("spec"));
            let check = names::validate_dns_subdomain;
            errors.check_required(&path.field("policyName"), &spec.policy_name, check);
            if let Some(to) = &spec.param_ref {
                validate_param_ref(to, &path.field("paramRef"), errors);
            }
            if let Some(resources) = &spec.match_resources {
                rule::validate_resources(resources, &path.field("matchResources"), errors);
            }
            ($validate)(self, &path, errors);
        }

        fn warnings(&self) -> Vec<String> {
            vec![NO_EFFECT_OF_BINDING.into()]
        }

        fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
            (column == "ParamRef").then(|| param_ref_cell(self.spec.param_ref.as_ref()))
        }
    };
}

impl StoredKind for ValidatingAdmissionPolicyBinding {
    binding_items!(
        |binding: &Self, path: &FieldPath<'_>, errors: &mut FieldErrors| {
            let actions = &binding.spec.validation_actions;
            validate_actions(actions, &path.field("validationActions"), errors);
        }
    );
}

impl StoredKind for MutatingAdmissionPolicyBinding {
    binding_items!(
        |binding: &Self, path: &FieldPath<'_>, errors: &mut FieldErrors| {
            if let Some(resources) = &binding.spec.match_resources {
                rule::validate_mutable(resources, &path.field("matchResources"), errors);
            }
        }
    );
}

fn validate_failure_policy(policy: Option<&str>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("failurePolicy");
    match policy {
        None => errors.required(&at, ""),
        policy => errors.one_of(&at, policy, FAILURE_POLICIES),
    }
}

fn validate_param_kind(kind: Option<&ParamKind>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
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
fn validate_constraints(
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

fn validate_variables(variables: &[Variable], path: &FieldPath<'_>, errors: &mut FieldErrors) {
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
    name.chars().all(plain) && !digit && !RESERVED.contains(&name)
}

fn validate_expression(expression: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if expression.trim().is_empty() {
        errors.required(&path.field("expression"), "expression is not specified");
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

fn validate_actions(actions: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, action) in actions.iter().enumerate() {
        errors.one_of(&path.index(index), action.as_str(), ACTIONS);
        if actions[..index].contains(action) {
            errors.duplicate(&path.index(index), action);
        }
    }
    let has = |action: &str| actions.iter().any(|one| one == action);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.invalid(path, actions, detail);
    }
    if actions.is_empty() {
        errors.required(path, "at least one validation action is required");
    }
}

fn validate_param_ref(to: &ParamRef, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.check(&path.field("name"), &to.name, names::validate_path_segment);
    let selector = to.selector.as_ref();
    label_selector::validate(selector, &path.field("selector"), errors);
    match (to.name.is_empty(), selector) {
        (false, Some(_)) => {
            for field in ["name", "selector"] {
                let detail = "name and selector are mutually exclusive";
                errors.forbidden(&path.field(field), detail);
            }
        }
        (true, None) => errors.required(path, "one of name or selector must be specified"),
        _ => {}
    }
    let at = path.field("parameterNotFoundAction");
    match to.parameter_not_found_action.as_deref() {
        None | Some("") => errors.required(&at, ""),
        action => errors.one_of(&at, action, NOT_FOUND_ACTIONS),
    }
}

/// Validates conditions of the general form (upstream: `metav1.Condition`).
fn validate_status_conditions(
    conditions: &[Condition],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    const STATUSES: &[&str] = &["False", "True", "Unknown"];
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        let mut before = conditions[..index].iter();
        if before.any(|one| one.r#type == condition.r#type) {
            errors.duplicate(&at.field("type"), &condition.r#type);
        }
        let check = names::validate_qualified_name;
        errors.check(&at.field("type"), &condition.r#type, check);
        errors.one_of(&at.field("status"), condition.status.as_str(), STATUSES);
        if condition.observed_generation < 0 {
            let detail = "must be greater than or equal to zero";
            let at = at.field("observedGeneration");
            errors.invalid(&at, condition.observed_generation, detail);
        }
        if condition.last_transition_time.timestamp().is_none() {
            errors.required(&at.field("lastTransitionTime"), "");
        }
        errors.not_empty(&at.field("reason"), &condition.reason);
        for (field, text, limit) in [
            ("reason", &condition.reason, 1024),
            ("message", &condition.message, 32_768),
        ] {
            if text.len() > limit {
                errors.too_long(&at.field(field), limit);
            }
        }
    }
}

fn param_kind_cell(kind: Option<&ParamKind>) -> Value {
    match kind {
        Some(kind) => format!("{}/{}", kind.api_version, kind.kind).into(),
        None => "<unset>".into(),
    }
}

fn param_ref_cell(to: Option<&ParamRef>) -> Value {
    let Some(to) = to else {
        return "<unset>".into();
    };
    match (to.name.as_str(), to.namespace.as_str(), &to.selector) {
        ("", _, Some(selector)) => serde_json::to_string(selector).unwrap_or_default().into(),
        ("", _, None) => "<unset>".into(),
        (name, "", _) => format!("*/{name}").into(),
        (name, namespace, _) => format!("{namespace}/{name}").into(),
    }
}
