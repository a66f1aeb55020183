//! Compiles expressions about the claims of a token, and about the user that they become.

use std::sync::LazyLock;

use setpoint_cel::{Environment, Expression, Global, Node, Output, selects};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;

use crate::schema::{list, map, object, text};

const CLAIMS: &str = "claims";

static USER: LazyLock<Node> = LazyLock::new(|| {
    object([
        ("username", text()),
        ("uid", text()),
        ("groups", list(text())),
        ("extra", map(list(text()))),
    ])
});

/// A compiled expression, with its text.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) source: String,
    pub(super) expression: Expression,
}

/// Compiles expressions. Used on the stack of compilers only.
pub(super) struct Compiler {
    claims: Environment<'static>,
    user: Environment<'static>,
}

impl Compiler {
    pub(super) fn new() -> Self {
        Self {
            claims: Environment::new(&[(CLAIMS, Global::Any)]),
            user: Environment::new(&[("user", Global::Object(&USER))]),
        }
    }

    /// Compiles an expression about claims; `None` with an error.
    pub(super) fn about_claims(
        &self,
        source: &str,
        output: Output,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Compiled> {
        compiled(&self.claims, source, output, path, errors)
    }

    /// Compiles a condition about the user; `None` with an error.
    pub(super) fn about_user(
        &self,
        source: &str,
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Option<Compiled> {
        compiled(&self.user, source, Output::Bool, path, errors)
    }
}

fn compiled(
    environment: &Environment<'static>,
    source: &str,
    output: Output,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> Option<Compiled> {
    match environment.compile(source, output) {
        Ok(expression) => {
            let source = source.to_owned();
            Some(Compiled { source, expression })
        }
        Err(error) => {
            // Here, upstream does not say which type it is instead.
            let error = match error.split_once(" but got ") {
                Some((wanted, _)) if wanted.starts_with("must evaluate to ") => wanted,
                _ => &error,
            };
            errors.invalid(path, source, error);
            None
        }
    }
}

impl Compiled {
    /// Returns whether the expression reads a claim by its name.
    pub(super) fn reads_claim(&self, claim: &str) -> bool {
        selects(&self.source, CLAIMS, claim)
    }
}
