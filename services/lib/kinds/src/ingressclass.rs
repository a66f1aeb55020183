//! IngressClass: the controller is immutable; one class is the default of Ingresses.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::networking::{IngressClass, IngressClassParametersReference};

use super::{StoredKind, default_class};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The annotation that marks the default class.
pub const DEFAULT: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
const CONTROLLER_MAX: usize = 250;
const SCOPES: &[&str] = &["Cluster", "Namespace"];

impl StoredKind for IngressClass {
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        if let Some(parameters) = &mut self.spec.parameters {
            parameters.scope.get_or_insert_with(|| "Cluster".into());
        }
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        let at = path.field("controller");
        if spec.controller.len() > CONTROLLER_MAX {
            errors.too_long(&at, CONTROLLER_MAX);
        }
        errors.domain_prefixed_path(&at, &spec.controller);
        if let Some(parameters) = &spec.parameters {
            validate_parameters(parameters, &path.field("parameters"), errors);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let (new, old) = (&self.spec.controller, &old.spec.controller);
        errors.immutable(&path.field("controller"), new, old);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        Some(match column {
            "Name" => default_class::name_cell(&self.metadata, DEFAULT).into(),
            "Controller" => self.spec.controller.as_str().into(),
            "Parameters" => match &self.spec.parameters {
                None => "<none>".into(),
                Some(parameters) => parameters_cell(parameters).into(),
            },
            _ => return None,
        })
    }
}

fn parameters_cell(parameters: &IngressClassParametersReference) -> String {
    let (kind, name) = (&parameters.kind, &parameters.name);
    match &parameters.api_group {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn validate_parameters(
    parameters: &IngressClassParametersReference,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(group) = &parameters.api_group {
        errors.check(
            &path.field("apiGroup"),
            group,
            names::validate_dns_subdomain,
        );
    }
    let check = names::validate_path_segment;
    errors.check_required(&path.field("kind"), &parameters.kind, check);
    errors.check_required(&path.field("name"), &parameters.name, check);
    let (at, scope) = (path.field("scope"), parameters.scope.as_deref());
    errors.one_of(&at, scope, SCOPES);
    let at = path.field("namespace");
    match (scope, &parameters.namespace) {
        (Some("Namespace"), None) => {
            errors.required(&at, "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), Some(namespace)) => {
            errors.check(&at, namespace, names::validate_dns_label);
        }
        (Some("Cluster"), Some(_)) => {
            errors.forbidden(&at, "`parameters.scope` is set to 'Cluster'");
        }
        _ => {}
    }
}
