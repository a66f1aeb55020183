//! Match conditions: expressions that all have to hold for a policy or webhook to be asked about a request.

use setpoint_cel::{Environment, Expression, Output, on_compiler_stack};
use setpoint_proto::admissionregistration::MatchCondition;

use super::environment::{Types, of_policy};

/// An expression, or the error of its compilation.
pub type Compiled = Result<Expression, String>;

/// Compiles the match conditions of a webhook.
///
/// # Errors
/// If there are no resources to compile with.
pub fn compile(conditions: &[MatchCondition]) -> Result<Vec<Compiled>, String> {
    on_compiler_stack(|| compile_in(&of_policy(false, true, Types::default()), conditions))
}

/// Compiles match conditions in an environment.
pub(super) fn compile_in(
    environment: &Environment<'_>,
    conditions: &[MatchCondition],
) -> Vec<Compiled> {
    let sources = conditions.iter().map(|one| one.expression.trim());
    sources
        .map(|source| environment.compile(source, Output::Bool))
        .collect()
}
