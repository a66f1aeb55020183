//! Values against a schema, with the errors of upstream's OpenAPI validator.

mod budget;
mod format;
mod logic;
mod number;
mod outcome;
mod text;

use serde_json::{Map, Value};
use setpoint_cel::go::Num;
use setpoint_cel::{AdditionalProperties, Node};

use crate::path::Path;
use crate::ratchet::Correlated;
use crate::violation::{Kind, Violation};
use budget::Budget;
use outcome::Outcome;

/// The type of a list in a schema.
const ARRAY: &str = "array";
const INTEGER: &str = "integer";
const NUMBER: &str = "number";
const STRING: &str = "string";

/// Validates a value. `prefix` is the path of the value; `old` suppresses the errors of parts that an update leaves as
/// they are.
pub(crate) fn validate(
    node: &Node,
    value: &Value,
    old: Option<&Correlated<'_>>,
    prefix: &str,
) -> Vec<Violation> {
    let budget = Budget::default();
    let mut violations = check(node, value, old, &Path::ROOT, &budget).into_violations();
    violations.extend(budget.exceeded());
    for violation in &mut violations {
        violation.path = match (prefix, violation.path.as_str()) {
            ("", _) => continue,
            (prefix, "<nil>") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
    }
    violations
}

/// Checks a value that may be unchanged: then its errors do not count.
fn check(
    node: &Node,
    value: &Value,
    old: Option<&Correlated<'_>>,
    path: &Path<'_>,
    budget: &Budget,
) -> Outcome {
    let mut outcome = check_all(node, value, old, path, budget);
    if !outcome.is_valid() && old.is_some_and(Correlated::is_unchanged) {
        outcome.forgive();
    }
    outcome
}

/// Runs every check that applies to the type of the value. Each adds to the number of checks made, which `anyOf` and
/// `oneOf` use to choose the branch whose errors they report.
fn check_all(
    node: &Node,
    value: &Value,
    old: Option<&Correlated<'_>>,
    path: &Path<'_>,
    budget: &Budget,
) -> Outcome {
    let mut outcome = Outcome::default();
    if !budget.spend() {
        return outcome;
    }
    let types = Types::of(node);
    if value.is_null() {
        outcome.merge(types.check(value, path));
        outcome.merge(enumeration(node, value, path));
        return outcome;
    }
    if types.apply() {
        outcome.merge_counted(types.check(value, path));
    }
    outcome.merge_counted(logic::check(node, value, old, path, budget));
    match value {
        Value::String(text) => {
            outcome.merge_counted(text::check(node, text, path));
            if format::is_known(node) {
                outcome.merge_counted(text::check_format(node, text, path));
            }
        }
        Value::Number(number) => outcome.merge_counted(number::check(node, Num::of(number), path)),
        Value::Array(items) => outcome.merge_counted(list(node, items, old, path, budget)),
        _ => {}
    }
    outcome.merge_counted(enumeration(node, value, path));
    if let Value::Object(fields) = value {
        outcome.merge_counted(object(node, fields, old, path, budget));
    }
    outcome.count();
    outcome
}

/// The types that a schema allows, and its format.
struct Types<'a> {
    names: &'a [&'a str],
    declared: &'a str,
    format: &'a str,
    nullable: bool,
}

impl<'a> Types<'a> {
    fn of(node: &'a Node) -> Self {
        let names: &[&str] = match node.int_or_string {
            true => &[INTEGER, STRING],
            false => &[],
        };
        Types {
            names,
            declared: if node.int_or_string {
                ""
            } else {
                &node.schema_type
            },
            format: format::effective(node),
            nullable: node.nullable,
        }
    }

    fn apply(&self) -> bool {
        self.is_typed() || !self.format.is_empty()
    }

    fn is_typed(&self) -> bool {
        !self.names.is_empty() || !self.declared.is_empty()
    }

    fn contain(&self, name: &str) -> bool {
        self.declared == name || self.names.contains(&name)
    }

    fn expected(&self) -> String {
        match self.names.is_empty() {
            true => self.declared.to_owned(),
            false => self.names.join(","),
        }
    }

    fn check(&self, value: &Value, path: &Path<'_>) -> Outcome {
        let (name, format) = type_of(value);
        if value.is_null() {
            return match self.is_typed() && !self.nullable {
                true => mistyped(path, &self.expected(), "null"),
                false => Outcome::counted(),
            };
        }
        let is_number = self.contain(NUMBER) || self.contain(INTEGER);
        let integral = matches!(value, Value::Number(number) if match Num::of(number) {
            Num::Int(_) => self.contain(NUMBER),
            Num::Float(float) => self.contain(INTEGER) && setpoint_cel::go::is_integer(float),
        });
        let matches = self.contain(name) || integral;
        // A string or list of a formatted schema is left to the format, as upstream does.
        if !self.format.is_empty() {
            let formatted = name == STRING || name == ARRAY;
            if !formatted && !matches && format != self.format {
                return mistyped(path, self.format, format);
            }
            if formatted && !is_number {
                return Outcome::counted();
            }
        }
        match matches {
            true => Outcome::counted(),
            false => mistyped(path, &self.expected(), name),
        }
    }
}

/// The name and format of a value's type.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) => match Num::of(number) {
            Num::Int(_) => (INTEGER, "int64"),
            Num::Float(_) => (NUMBER, "float64"),
        },
        Value::String(_) => (STRING, ""),
        Value::Array(_) => (ARRAY, ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Upstream shows the type of the value in its place.
fn mistyped(path: &Path<'_>, expected: &str, found: &str) -> Outcome {
    let detail = format!("{path} in body must be of type {expected}: {found:?}");
    Outcome::failed(Violation::new(
        Kind::TypeInvalid,
        path,
        Some(found.into()),
        detail,
    ))
}

fn enumeration(node: &Node, value: &Value, path: &Path<'_>) -> Outcome {
    if node.enumeration.allows(value) {
        return Outcome::default();
    }
    let supported: Vec<_> = node.enumeration.values().iter().map(unquoted).collect();
    Outcome::failed(Violation::not_supported(path, value.clone(), &supported))
}

fn unquoted(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => setpoint_cel::go::json(other),
    }
}

fn list(
    node: &Node,
    items: &[Value],
    old: Option<&Correlated<'_>>,
    path: &Path<'_>,
    budget: &Budget,
) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(schema) = &node.items {
        let old = old.and_then(Correlated::list);
        for (index, item) in items.iter().enumerate() {
            let old = old.as_ref().and_then(|old| old.item(index));
            outcome.merge(check(
                schema,
                item,
                old.as_ref(),
                &path.index(index),
                budget,
            ));
        }
    }
    let size = items.len() as i64;
    if let Some(min) = node.bounds.min_items.filter(|min| size < *min) {
        outcome.fail(Violation::invalid(
            path,
            size,
            format!("{path} in body should have at least {min} items"),
        ));
    }
    if let Some(max) = node.bounds.max_items.filter(|max| size > *max) {
        outcome.fail(Violation::too_many(path, items.len(), max));
    }
    outcome.count();
    outcome
}

fn object(
    node: &Node,
    fields: &Map<String, Value>,
    old: Option<&Correlated<'_>>,
    path: &Path<'_>,
    budget: &Budget,
) -> Outcome {
    let mut outcome = Outcome::default();
    let size = fields.len() as i64;
    if let Some(min) = node.bounds.min_properties.filter(|min| size < *min) {
        let detail = format!("{path} in body should have at least {min} properties");
        outcome.fail(Violation::invalid(path, size, detail));
    }
    if let Some(max) = node.bounds.max_properties.filter(|max| size > *max) {
        outcome.fail(Violation::too_many(path, fields.len(), max));
    }
    for (name, value) in fields {
        if node.properties.contains_key(name) {
            continue;
        }
        match &node.additional_properties {
            Some(AdditionalProperties::Schema(schema)) => {
                outcome.merge(field(schema, name, value, old, path, budget));
            }
            Some(AdditionalProperties::Allowed(false)) => {
                let detail = format!("{path}.{name} in body is a forbidden property");
                outcome.fail(Violation::invalid(path, name.as_str(), detail));
            }
            _ => {}
        }
    }
    for (name, schema) in &node.properties {
        if let Some(value) = fields.get(name) {
            outcome.merge(field(schema, name, value, old, path, budget));
        }
    }
    for name in node
        .required
        .iter()
        .filter(|name| !fields.contains_key(*name))
    {
        outcome.fail(Violation::required(&path.field(name), ""));
    }
    outcome
}

fn field(
    node: &Node,
    name: &str,
    value: &Value,
    old: Option<&Correlated<'_>>,
    path: &Path<'_>,
    budget: &Budget,
) -> Outcome {
    // Both are of one type and version after conversion, so that a change of these fields cannot be seen.
    let converted = path.is_root() && ["apiVersion", "kind"].contains(&name);
    let old = old.filter(|_| !converted).and_then(|old| old.field(name));
    check(node, value, old.as_ref(), &path.field(name), budget)
}
