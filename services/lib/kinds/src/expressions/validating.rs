//! The expressions of a validating policy, compiled.

use setpoint_cel::{Environment, Output, Variables, on_compiler_stack};
use setpoint_proto::admissionregistration::{ValidatingAdmissionPolicySpec, Validation, Variable};

use super::conditions::{Compiled, compile_in};
use super::environment::{Types, of_policy};

/// The compiled expressions of a policy, in its order.
#[derive(Debug, Default)]
pub struct Expressions {
    /// The match conditions.
    pub conditions: Vec<Compiled>,
    /// The variables that compile.
    pub variables: Variables,
    /// The error of each variable that does not compile.
    pub variable_errors: Vec<Option<String>>,
    /// The validations, of which `validations` are the expressions.
    pub declared: Vec<Validation>,
    /// The expressions of the validations.
    pub validations: Vec<Compiled>,
    /// `None` for validations without an expression for the message.
    pub messages: Vec<Option<Compiled>>,
    /// The keys of the audit annotations.
    pub annotation_keys: Vec<String>,
    /// The values of the audit annotations.
    pub annotations: Vec<Compiled>,
}

/// Compiles the expressions of a policy.
///
/// # Errors
/// If there are no resources to compile with.
pub fn compile(
    spec: &ValidatingAdmissionPolicySpec,
    types: Types<'_>,
) -> Result<Expressions, String> {
    on_compiler_stack(|| expressions(spec, types))
}

fn expressions(spec: &ValidatingAdmissionPolicySpec, types: Types<'_>) -> Expressions {
    let has_params = spec.param_kind.is_some();
    let mut environment = of_policy(has_params, true, types);
    let conditions = compile_in(&environment, &spec.match_conditions);
    let (variables, variable_errors) = declare(&mut environment, &spec.variables);
    let of_messages = of_policy(has_params, false, types).with_variables_of(&environment);
    let validations = spec.validations.iter();
    let messages = validations.clone().map(|validation| {
        let source = validation.message_expression.as_str();
        (!source.trim().is_empty()).then(|| of_messages.compile(source, Output::String))
    });
    let annotations = spec.audit_annotations.iter();
    Expressions {
        conditions,
        variable_errors,
        messages: messages.collect(),
        declared: spec.validations.clone(),
        annotation_keys: annotations.clone().map(|one| one.key.clone()).collect(),
        validations: validations
            .map(|validation| environment.compile(&validation.expression, Output::Bool))
            .collect(),
        annotations: annotations
            .map(|one| environment.compile(one.value_expression.trim(), Output::StringOrNull))
            .collect(),
        variables,
    }
}

/// Declares the variables of a policy. Returns them, and what is wrong with each.
pub(super) fn declare(
    environment: &mut Environment<'_>,
    declared: &[Variable],
) -> (Variables, Vec<Option<String>>) {
    let mut variables = Variables::default();
    let errors = declared.iter().map(|variable| {
        let (name, source) = (variable.name.as_str(), variable.expression.as_str());
        environment.declare(name, source, &mut variables).err()
    });
    let errors = errors.collect();
    (variables, errors)
}
