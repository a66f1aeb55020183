//! A compiled schema.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use setpoint_cel::Node;

use crate::path::Path;
use crate::ratchet::Correlated;
use crate::rules::{self, Budget, Tree};
use crate::violation::{Kind, Violation};
use crate::{defaults, embedded, list_type, parse, prune, value};

/// The schema of one version of a custom resource. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    root: Node,
    /// Compiled when an object is validated for the first time.
    rules: OnceLock<Option<Tree>>,
}

impl Schema {
    /// Compiles a schema from the JSON of its `openAPIV3Schema`.
    ///
    /// # Errors
    ///
    /// Returns what cannot be read or is too large. Whether a schema is structural is a question for the definition,
    /// not asked here.
    pub fn compile(json: &Value) -> Result<Self, Vec<Violation>> {
        parse::parse(json, &Path::ROOT).map(|mut root| {
            root.inherit(false);
            let rules = OnceLock::new();
            Self(Arc::new(Compiled { root, rules }))
        })
    }

    /// The schema of the whole object.
    pub fn root(&self) -> &Node {
        &self.0.root
    }

    fn rules(&self) -> Option<&Tree> {
        let compile = || Tree::compile(self.root(), true);
        self.0.rules.get_or_init(compile).as_ref()
    }

    /// Removes fields that the schema does not know, and returns their paths, sorted. `apiVersion`, `kind` and
    /// `metadata` of the object stay as they are; the metadata of embedded objects keeps its known fields.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(object, self.root(), true)
    }

    /// Drops nulls of fields that are not nullable and have no default, and sets the defaults of missing fields.
    ///
    /// # Errors
    ///
    /// Returns a violation if the defaults would add more than a million values; the object is then incomplete.
    pub fn fill_defaults(&self, object: &mut Value) -> Result<(), Violation> {
        defaults::fill(object, self.root())
    }

    /// Validates an object. `old` is the object that it replaces: errors of unchanged parts are not reported.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Violation> {
        self.validate_and_forgive(new, old, &mut Vec::new())
    }

    /// As [`Self::validate`]. Puts what rules say of unchanged parts into `forgiven`.
    pub fn validate_and_forgive(
        &self,
        new: &Value,
        old: Option<&Value>,
        forgiven: &mut Vec<Violation>,
    ) -> Vec<Violation> {
        let correlated = old.map(|old| Correlated::new(new, old, self.root()));
        let mut found = value::validate(self.root(), new, correlated.as_ref(), "");
        embedded::check(self.root(), new, &Path::ROOT, &mut found);
        if old.is_none_or(|old| self.duplicates(old).is_empty()) {
            found.extend(self.duplicates(new));
        }
        if let Some(rules) = self.rules() {
            match found.iter().any(is_blocking) {
                true => found.push(not_checked()),
                false => found.extend(self.against_rules(rules, new, old, forgiven)),
            }
        }
        found
    }

    fn against_rules(
        &self,
        rules: &Tree,
        new: &Value,
        old: Option<&Value>,
        forgiven: &mut Vec<Violation>,
    ) -> Vec<Violation> {
        let (root, budget) = (self.root(), &mut Budget::new());
        rules::validate(rules, root, new, old, Some(forgiven), &Path::ROOT, budget)
    }

    fn duplicates(&self, object: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        list_type::check(self.root(), object, &Path::ROOT, &mut found);
        found
    }
}

/// Whether a rule could meet a value that its schema does not allow.
fn is_blocking(violation: &Violation) -> bool {
    use Kind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(
        violation.kind,
        NotSupported | Required | TooLong | TooMany | TypeInvalid
    )
}

fn not_checked() -> Violation {
    let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    Violation::invalid(&Path::ROOT, Value::Null, detail)
}
