//! `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;
use setpoint_cel::Node;
use setpoint_cel::go::quote;

use super::budget::Budget;
use super::check_all;
use super::outcome::Outcome;
use crate::path::Path;
use crate::ratchet::Correlated;
use crate::violation::Violation;

pub(super) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Correlated<'_>>,
    path: &Path<'_>,
    budget: &Budget,
) -> Outcome {
    let subject = Subject {
        value,
        old,
        path,
        budget,
    };
    let mut outcome = Outcome::counted();
    if !node.any_of.is_empty() {
        outcome.merge(subject.any_of(&node.any_of));
    }
    if !node.one_of.is_empty() {
        outcome.merge(subject.one_of(&node.one_of));
    }
    if !node.all_of.is_empty() {
        outcome.merge(subject.all_of(&node.all_of));
    }
    if node.not.iter().any(|not| subject.against(not).is_valid()) {
        outcome.fail(subject.error("must not validate the schema (not)"));
    }
    outcome
}

/// The value that is checked.
struct Subject<'a> {
    value: &'a Value,
    old: Option<&'a Correlated<'a>>,
    path: &'a Path<'a>,
    budget: &'a Budget,
}

impl Subject<'_> {
    /// The branch itself is not ratcheted, but the fields below it are.
    fn against(&self, node: &Node) -> Outcome {
        check_all(node, self.value, self.old, self.path, self.budget)
    }

    fn any_of(&self, nodes: &[Node]) -> Outcome {
        let mut best: Option<Outcome> = None;
        for node in nodes {
            let branch = self.against(node);
            if branch.is_valid() {
                return branch;
            }
            if best.as_ref().is_none_or(|best| branch.checks > best.checks) {
                best = Some(branch);
            }
        }
        let mut outcome = Outcome::failed(self.error("must validate at least one schema (anyOf)"));
        outcome.merge(best.unwrap_or_default());
        outcome
    }

    fn one_of(&self, nodes: &[Node]) -> Outcome {
        let mut best: Option<Outcome> = None;
        let mut valid: Vec<Outcome> = Vec::new();
        for node in nodes {
            let branch = self.against(node);
            if branch.is_valid() {
                valid.push(branch);
                best = None;
            } else if valid.is_empty()
                && best.as_ref().is_none_or(|best| branch.checks > best.checks)
            {
                best = Some(branch);
            }
        }
        let found = match valid.len() {
            0 => "Found none valid".to_owned(),
            1 => return valid.remove(0),
            count => format!("Found {count} valid alternatives"),
        };
        let error = format!("must validate one and only one schema (oneOf). {found}");
        let mut outcome = Outcome::failed(self.error(&error));
        outcome.merge(best.unwrap_or_default());
        outcome
    }

    fn all_of(&self, nodes: &[Node]) -> Outcome {
        let mut outcome = Outcome::default();
        let mut valid = 0;
        for node in nodes {
            let branch = self.against(node);
            valid += usize::from(branch.is_valid());
            outcome.merge(branch);
        }
        if valid != nodes.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.fail(self.error(&format!("must validate all the schemas (allOf){none}")));
        }
        outcome
    }

    /// These errors name the field in their text, and have no path.
    fn error(&self, what: &str) -> Violation {
        let path = quote(&self.path.to_string());
        Violation::invalid(&Path::ROOT, "", format!("{path} {what}"))
    }
}
