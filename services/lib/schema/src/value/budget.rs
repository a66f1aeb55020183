//! The limit of the checks of one object.
//!
//! A list of a million short texts fits into a request, and each may have to be checked against two thousand schemas of
//! an `anyOf`. Upstream makes all of these checks.

use std::cell::Cell;

use crate::path::Path;
use crate::violation::Violation;

/// The values that are checked against a schema each, in one object. Objects of the largest size against schemas in use
/// need a tenth of it; it takes seconds.
const MAX_CHECKS: usize = 20_000_000;

/// The checks that remain. An object that has used all of them is not accepted, even if it needed no more.
pub(super) struct Budget(Cell<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MAX_CHECKS))
    }
}

impl Budget {
    /// Takes one check. Returns whether it was left.
    pub(super) fn spend(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns the error of an object that was not checked completely.
    pub(super) fn exceeded(&self) -> Option<Violation> {
        let detail = format!(
            "the object needs more than {MAX_CHECKS} checks against the schemas of its definition (try fewer items, or fewer schemas inside of allOf, anyOf, oneOf and not)"
        );
        (self.0.get() == 0).then(|| Violation::forbidden(&Path::ROOT, detail))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    #[test]
    fn an_object_that_needs_too_many_checks_is_refused() {
        let schema = json!({
            "type": "object",
            "properties": {"l": {"type": "array", "items": {"anyOf": vec![json!({"maxLength": 0}); 10]}}},
        });
        let node = parse::parse(&schema, &Path::ROOT).unwrap();
        let object = json!({"l": vec!["a"; 8]});
        // The object, the list, and each item with its branches.
        let needed = 2 + 8 * 11;
        for (left, complete) in [(needed + 1, true), (needed, false), (20, false)] {
            let budget = Budget(Cell::new(left));
            super::super::check(&node, &object, None, &Path::ROOT, &budget);
            assert_eq!(budget.exceeded().is_none(), complete, "{left}");
        }
        let exceeded = Budget(Cell::new(0)).exceeded().unwrap();
        assert!(exceeded.to_string().contains("more than 20000000 checks"));
    }
}
