//! Rules that are ready to be evaluated.

use setpoint_cel::{CompileError, Node, Output, Program, Rule};

use crate::definition::field_path;

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Result<Program, String>,
    /// None if the rule has none.
    pub(super) message: Option<Result<Program, String>>,
    /// The path of the field that errors are of, below the value.
    pub(super) field_path: String,
}

/// Compiles a rule. None if it is empty. Call it from [`setpoint_cel::on_compiler_stack`].
pub(super) fn rule(rule: &Rule, node: &Node, is_resource: bool) -> Option<Compiled> {
    if rule.rule.trim().is_empty() {
        return None;
    }
    let optional = rule.optional_old_self == Some(true);
    let compile = |source: &str, output, failed: &str, mistyped: &str| {
        let compiled = Program::compile(source, node, is_resource, optional, output);
        compiled.map_err(|error| match error {
            CompileError::Failed(error) => format!("{failed}: {error}"),
            CompileError::WrongType => mistyped.to_owned(),
        })
    };
    let compiled = compile(
        &rule.rule,
        Output::Bool,
        "compilation failed",
        "cel expression must evaluate to a bool",
    );
    let message = (!rule.message_expression.is_empty() && compiled.is_ok()).then(|| {
        compile(
            &rule.message_expression,
            Output::String,
            "messageExpression compilation failed",
            "messageExpression must evaluate to a string",
        )
    });
    Some(Compiled {
        rule: compiled,
        message,
        field_path: field_path::resolve(&rule.field_path, node).unwrap_or_default(),
    })
}
