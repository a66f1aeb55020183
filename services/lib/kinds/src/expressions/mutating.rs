//! The expressions of a mutating policy, compiled.

use setpoint_cel::{Environment, Output, Variables, on_compiler_stack};
use setpoint_proto::admissionregistration::{MutatingAdmissionPolicySpec, Mutation};

use super::conditions::{Compiled, compile_in};
use super::environment::{Types, of_policy};
use super::validating::declare;

/// The compiled expressions of a policy, in its order.
#[derive(Debug, Default)]
pub struct Mutations {
    /// The match conditions.
    pub conditions: Vec<Compiled>,
    /// The variables that compile.
    pub variables: Variables,
    /// The error of each variable that does not compile.
    pub variable_errors: Vec<Option<String>>,
    /// The mutations.
    pub patches: Vec<Patch>,
    /// Whether the policy is evaluated again after others have changed what it saw.
    pub is_reinvocable: bool,
}

/// An expression that makes a patch.
#[derive(Debug)]
pub struct Patch {
    /// The type of the expression's result.
    pub r#type: PatchType,
    /// The compiled expression.
    pub expression: Compiled,
}

/// The kind of patch that an expression makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// An object that is merged as server-side apply does.
    ApplyConfiguration,
    /// The operations of a JSON patch.
    JsonPatch,
}

/// Compiles the expressions of a policy.
///
/// # Errors
/// If there are no resources to compile with.
pub fn compile(spec: &MutatingAdmissionPolicySpec) -> Result<Mutations, String> {
    on_compiler_stack(|| mutations(spec))
}

fn mutations(spec: &MutatingAdmissionPolicySpec) -> Mutations {
    let mut environment = of_policy(spec.param_kind.is_some(), true, Types::default());
    let conditions = compile_in(&environment, &spec.match_conditions);
    let (variables, variable_errors) = declare(&mut environment, &spec.variables);
    let environment = environment.with_patch_types();
    let patches = spec.mutations.iter();
    Mutations {
        conditions,
        variables,
        variable_errors,
        patches: patches
            .map(|mutation| patch(&environment, mutation))
            .collect(),
        is_reinvocable: spec.reinvocation_policy == "IfNeeded",
    }
}

fn patch(environment: &Environment<'_>, mutation: &Mutation) -> Patch {
    let json = mutation
        .json_patch
        .as_ref()
        .map(|one| one.expression.trim());
    let apply = mutation
        .apply_configuration
        .as_ref()
        .map(|one| one.expression.trim());
    let (r#type, source, output) = match mutation.patch_type.as_str() {
        "JSONPatch" => (PatchType::JsonPatch, json, Output::Patches),
        _ => (PatchType::ApplyConfiguration, apply, Output::Object),
    };
    let expression = match source {
        Some(source) => environment.compile(source, output),
        None => Err("the mutation has no expression".to_owned()),
    };
    Patch { r#type, expression }
}
