//! The conditions under which a webhook is asked: expressions about the spec of a `SubjectAccessReview`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use setpoint_cel::{
    Environment, Error, Evaluation, Expression, Global, Input, Node, Output, Value as Found,
    Variables,
};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;

use super::document::MatchCondition;
use crate::schema::{list, map, object, text};

/// The most conditions.
const MOST: usize = 64;
/// The limit of the cost of all conditions together, as of those of an admission webhook.
const BUDGET: u64 = 10_000_000;

static REQUEST: LazyLock<Node> = LazyLock::new(|| {
    let selector = || {
        let requirement = object([
            ("key", text()),
            ("operator", text()),
            ("values", list(text())),
        ]);
        object([("rawSelector", text()), ("requirements", list(requirement))])
    };
    let resource = object([
        ("namespace", text()),
        ("verb", text()),
        ("group", text()),
        ("version", text()),
        ("resource", text()),
        ("subresource", text()),
        ("name", text()),
        ("fieldSelector", selector()),
        ("labelSelector", selector()),
    ]);
    object([
        ("resourceAttributes", resource),
        (
            "nonResourceAttributes",
            object([("path", text()), ("verb", text())]),
        ),
        ("user", text()),
        ("groups", list(text())),
        ("extra", map(list(text()))),
        ("uid", text()),
    ])
});

/// Conditions that must all hold.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<Expression>);

impl MatchConditions {
    /// Returns whether there is none, so that every request matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether all hold for the spec of a `SubjectAccessReview`, in which no text that conditions can name is
    /// missing.
    ///
    /// # Errors
    /// Why there is no answer: one fails, and none does not hold.
    pub fn hold(&self, spec: &Value) -> Result<bool, String> {
        let variables = Variables::default();
        let mut evaluation = Evaluation::new(&variables, &[Input::Json(spec)], BUDGET);
        let mut errors = Vec::new();
        for condition in &self.0 {
            match evaluation.eval(condition) {
                Ok(Found::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(Error::Failed(why)) => errors.push(format!("cel evaluation error: {why}")),
                Err(Error::OutOfBudget) => {
                    errors.push(
                        "cel evaluation error: the conditions cost more than they may".into(),
                    );
                    break;
                }
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// Validates and compiles conditions. Used on the stack of compilers only.
    pub(super) fn compile(
        conditions: &[MatchCondition],
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) -> Self {
        if conditions.len() > MOST {
            errors.at_most(path, conditions.len(), MOST);
            return Self::default();
        }
        let environment = Environment::new(&[("request", Global::Object(&REQUEST))]);
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for (index, condition) in conditions.iter().enumerate() {
            let path = path.index(index);
            let (path, source) = (path.field("expression"), condition.expression.as_str());
            if source.trim().is_empty() {
                errors.required(&path, "");
            } else if !seen.insert(source) {
                errors.duplicate(&path, source);
            } else {
                match environment.compile(source, Output::Bool) {
                    Ok(compiled) => found.push(compiled),
                    Err(error) => errors.invalid(&path, source, error),
                }
            }
        }
        Self(found)
    }
}
