//! The schema of one value.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::go::Num;
use crate::pattern::Pattern;

/// The schema of one value: of the whole object, of a field, or of the items of a list or map. Schemas inside `allOf`,
/// `anyOf`, `oneOf` and `not` are nodes, too; in a structural schema they only have value validations.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty if any value is allowed.
    pub schema_type: String,
    /// The title, for clients.
    pub title: String,
    /// The documentation of the field, for clients.
    pub description: String,
    /// The format of a string or number; formats that are not known are ignored.
    pub format: String,
    /// Whether null is a value.
    pub nullable: bool,
    /// The fields of an object.
    pub properties: BTreeMap<String, Node>,
    /// The values of a map.
    pub additional_properties: Option<AdditionalProperties>,
    /// The items of a list.
    pub items: Option<Box<Node>>,
    /// The value of a field that is missing.
    pub default: Option<Value>,
    /// Whether fields that no schema describes are kept.
    pub preserve_unknown_fields: bool,
    /// Whether this schema or an outer one keeps such fields. Configurations that are applied may then have them, even
    /// where they are not kept, as upstream.
    pub may_have_unknown_fields: bool,
    /// Whether the value is an integer or a string.
    pub int_or_string: bool,
    /// Whether the value is an object with `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type` as declared; see [`Node::list_type`].
    pub declared_list_type: Option<String>,
    /// The fields that identify the items of a list of type map.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type` as declared; see [`Node::is_atomic_map`].
    pub declared_map_type: Option<String>,
    /// The values that are allowed; any if empty.
    pub enumeration: Enumeration,
    /// Fields that must be set.
    pub required: Vec<String>,
    /// Bounds of numbers, lengths and counts.
    pub bounds: Bounds,
    /// The pattern of a string.
    pub pattern: Option<Pattern>,
    /// Schemas that all must hold.
    pub all_of: Vec<Node>,
    /// Schemas of which one at least must hold.
    pub any_of: Vec<Node>,
    /// Schemas of which exactly one must hold.
    pub one_of: Vec<Node>,
    /// A schema that must not hold.
    pub not: Option<Box<Node>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
}

/// The rule for the values of a map.
#[derive(Clone, Debug)]
pub enum AdditionalProperties {
    /// Any value, or none at all.
    Allowed(bool),
    /// Values of this schema.
    Schema(Box<Node>),
}

/// The type of a list (`x-kubernetes-list-type`), which says how its items are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Items are distinct values.
    Set,
    /// Items are objects with the keys of [`Node::list_map_keys`].
    Map,
}

/// The bounds of a value.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // They have the names of JSON schema.
pub struct Bounds {
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub unique_items: bool,
}

/// One rule in the expression language CEL.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // They have the names of the API.
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// The values that an `enum` allows.
#[derive(Clone, Debug, Default)]
pub struct Enumeration {
    values: Vec<Value>,
    known: HashSet<String>,
}

impl Enumeration {
    /// Returns an `enum` with these values.
    pub fn new(values: Vec<Value>) -> Self {
        // A null in the list allows nothing: upstream compares by type, and null has none.
        let typed = values.iter().filter(|value| !value.is_null());
        let known = typed.map(canonical).collect();
        Self { values, known }
    }

    /// The values as declared.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns whether the value is one of those that are allowed.
    pub fn allows(&self, value: &Value) -> bool {
        self.values.is_empty() || self.known.contains(&canonical(value))
    }
}

/// One text for values that are equal: 1 is 1.0.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => Num::of(number).as_f64().to_string(),
        other => other.to_string(),
    }
}

impl Node {
    /// Returns the list type; atomic if nothing else is declared.
    pub fn list_type(&self) -> ListType {
        match self.declared_list_type.as_deref() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map,
            _ => ListType::Atomic,
        }
    }

    /// Whether the object or map is one value: its parts have no owners of their own.
    pub fn is_atomic_map(&self) -> bool {
        self.declared_map_type.as_deref() == Some("atomic")
    }

    /// The schema of the values of a map.
    pub fn values(&self) -> Option<&Node> {
        match &self.additional_properties {
            Some(AdditionalProperties::Schema(node)) => Some(node),
            _ => None,
        }
    }

    /// The schema of a field: of a property, or of the values of a map.
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or_else(|| self.values())
    }

    /// Sets [`Node::may_have_unknown_fields`] here and below.
    pub fn inherit(&mut self, outer: bool) {
        let inherited = outer || self.preserve_unknown_fields;
        self.may_have_unknown_fields = inherited;
        let values = match &mut self.additional_properties {
            Some(AdditionalProperties::Schema(values)) => Some(values),
            _ => None,
        };
        let below = self.properties.values_mut();
        let others = values.into_iter().chain(&mut self.items);
        let below = below.chain(others.map(|node| &mut **node));
        below.for_each(|node| node.inherit(inherited));
    }

    /// The schemas inside `allOf`, `anyOf`, `oneOf` and `not`, with the keyword and the index of each.
    pub fn junctors(&self) -> impl Iterator<Item = (&'static str, Option<usize>, &Node)> {
        let lists = [
            ("allOf", &self.all_of),
            ("anyOf", &self.any_of),
            ("oneOf", &self.one_of),
        ];
        let listed = lists.into_iter().flat_map(|(word, nodes)| {
            let nodes = nodes.iter().enumerate();
            nodes.map(move |(index, node)| (word, Some(index), node))
        });
        listed.chain(self.not.iter().map(|node| ("not", None, &**node)))
    }
}
