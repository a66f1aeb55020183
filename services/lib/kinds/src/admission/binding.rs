//! ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding: the requests that a policy concerns, and its
//! parameters.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::admissionregistration::{
    MutatingAdmissionPolicyBinding, ParamRef, ValidatingAdmissionPolicyBinding,
};

use super::{rule, warn_of_name};
use crate::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;
use crate::validation::warnings::Warnings;

const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS: &[&str] = &["Deny", "Allow"];

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

        fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
            warn_of_name(&self.metadata.name, warnings);
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
