//! Schemas from their JSON.

use std::collections::HashMap;

use serde_json::{Map, Value};
use setpoint_cel::go::is_integer;
use setpoint_cel::{AdditionalProperties, Bounds, Enumeration, Node, Pattern, Rule};

use crate::path::Path;
use crate::violation::Violation;

/// The deepest nesting of schemas. JSON of twice as many levels is refused by most decoders.
const MAX_DEPTH: usize = 64;
/// The number of schemas in one schema. The largest definitions in use have some ten thousand.
const MAX_NODES: usize = 50_000;
/// The number of schemas below `allOf`, `anyOf`, `oneOf` and `not` that one value is checked against.
const MAX_BRANCHES: usize = 2_000;
/// The values of one `enum`.
const MAX_ENUM: usize = 10_000;
/// The distinct patterns of one schema: each is a compiled program.
const MAX_PATTERNS: usize = 500;

/// The rules of one schema: each is compiled.
const MAX_RULES: usize = 2_000;

/// Reads a schema.
///
/// # Errors
///
/// Returns what is malformed, not supported, or too large.
pub(crate) fn parse(json: &Value, path: &Path<'_>) -> Result<Node, Vec<Violation>> {
    let mut parser = Parser::default();
    let node = parser.node(json, path, 0);
    match parser.problems.is_empty() {
        true => Ok(node),
        false => Err(parser.problems),
    }
}

#[derive(Default)]
struct Parser {
    nodes: usize,
    /// The schemas below junctors of the value at hand; none outside of junctors.
    branches: Option<usize>,
    patterns: HashMap<String, Pattern>,
    rules: usize,
    problems: Vec<Violation>,
}

impl Parser {
    fn node(&mut self, json: &Value, path: &Path<'_>, depth: usize) -> Node {
        let Some(json) = json.as_object() else {
            self.malformed(path, json, "must be an object");
            return Node::default();
        };
        if !self.admits(path, depth) {
            return Node::default();
        }
        let mut node = self.leaf(json, path);
        self.children(&mut node, json, path, depth);
        self.junctors(&mut node, json, path, depth);
        node
    }

    /// Counts a schema. Reports the limit that it exceeds once.
    fn admits(&mut self, path: &Path<'_>, depth: usize) -> bool {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            let detail = format!("must not nest schemas deeper than {MAX_DEPTH} levels");
            self.problems.push(Violation::forbidden(path, detail));
            return false;
        }
        if self.nodes == MAX_NODES + 1 {
            let detail = format!("must not have more than {MAX_NODES} schemas");
            self.problems.push(Violation::forbidden(path, detail));
        }
        if let Some(branches) = &mut self.branches {
            *branches += 1;
            if *branches == MAX_BRANCHES + 1 {
                let detail = format!(
                    "must not have more than {MAX_BRANCHES} schemas inside of allOf, anyOf, oneOf and not"
                );
                self.problems.push(Violation::forbidden(path, detail));
            }
        }
        self.nodes <= MAX_NODES && self.branches.is_none_or(|count| count <= MAX_BRANCHES)
    }

    /// Reads everything but other schemas.
    fn leaf(&mut self, json: &Map<String, Value>, path: &Path<'_>) -> Node {
        Node {
            schema_type: self.text(json, "type", path),
            title: self.text(json, "title", path),
            description: self.text(json, "description", path),
            format: self.text(json, "format", path),
            nullable: self.flag(json, "nullable", path),
            default: json
                .get("default")
                .filter(|value| !value.is_null())
                .cloned(),
            preserve_unknown_fields: self.flag(json, "x-kubernetes-preserve-unknown-fields", path),
            int_or_string: self.flag(json, "x-kubernetes-int-or-string", path),
            embedded_resource: self.flag(json, "x-kubernetes-embedded-resource", path),
            declared_list_type: self.optional_text(json, "x-kubernetes-list-type", path),
            list_map_keys: self.texts(json, "x-kubernetes-list-map-keys", path),
            declared_map_type: self.optional_text(json, "x-kubernetes-map-type", path),
            enumeration: self.enumeration(json, path),
            required: self.texts(json, "required", path),
            bounds: self.bounds(json, path),
            pattern: self.pattern(json, path),
            rules: self.rules(json, path),
            ..Node::default()
        }
    }

    fn children(
        &mut self,
        node: &mut Node,
        json: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        // The fields and items of a value are values of their own, unless they belong to a branch.
        let properties = path.field("properties");
        for (name, child) in self.object(json, "properties", path) {
            let child = self.node(child, &properties.key(name), depth + 1);
            node.properties.insert(name.clone(), child);
        }
        let additional = path.field("additionalProperties");
        node.additional_properties = match json.get("additionalProperties") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(allowed)) => Some(AdditionalProperties::Allowed(*allowed)),
            Some(schema) => {
                let child = self.node(schema, &additional, depth + 1);
                Some(AdditionalProperties::Schema(Box::new(child)))
            }
        };
        let items = path.field("items");
        node.items = match json.get("items") {
            None | Some(Value::Null) => None,
            Some(Value::Array(_)) => {
                let detail = "items must be a schema object and not an array";
                self.problems.push(Violation::forbidden(&items, detail));
                None
            }
            Some(schema) => Some(Box::new(self.node(schema, &items, depth + 1))),
        };
    }

    fn junctors(
        &mut self,
        node: &mut Node,
        json: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let outermost = self.branches.is_none();
        self.branches.get_or_insert(0);
        node.all_of = self.branch(json, "allOf", path, depth);
        node.any_of = self.branch(json, "anyOf", path, depth);
        node.one_of = self.branch(json, "oneOf", path, depth);
        let not = json.get("not").filter(|value| !value.is_null());
        node.not = not.map(|schema| Box::new(self.node(schema, &path.field("not"), depth + 1)));
        if outermost {
            self.branches = None;
        }
    }

    fn branch(
        &mut self,
        json: &Map<String, Value>,
        word: &str,
        path: &Path<'_>,
        depth: usize,
    ) -> Vec<Node> {
        let path = path.field(word);
        let schemas = self.list(json, word, &path).iter().enumerate();
        schemas
            .map(|(index, schema)| self.node(schema, &path.index(index), depth + 1))
            .collect()
    }

    fn enumeration(&mut self, json: &Map<String, Value>, path: &Path<'_>) -> Enumeration {
        let path = path.field("enum");
        let values = self.list(json, "enum", &path);
        if values.len() > MAX_ENUM {
            let violation = Violation::too_many(&path, values.len(), MAX_ENUM as i64);
            self.problems.push(violation);
            return Enumeration::default();
        }
        Enumeration::new(values.to_vec())
    }

    fn bounds(&mut self, json: &Map<String, Value>, path: &Path<'_>) -> Bounds {
        Bounds {
            maximum: self.double(json, "maximum", path),
            exclusive_maximum: self.flag(json, "exclusiveMaximum", path),
            minimum: self.double(json, "minimum", path),
            exclusive_minimum: self.flag(json, "exclusiveMinimum", path),
            multiple_of: self.double(json, "multipleOf", path),
            max_length: self.count(json, "maxLength", path),
            min_length: self.count(json, "minLength", path),
            max_items: self.count(json, "maxItems", path),
            min_items: self.count(json, "minItems", path),
            max_properties: self.count(json, "maxProperties", path),
            min_properties: self.count(json, "minProperties", path),
            unique_items: self.flag(json, "uniqueItems", path),
        }
    }

    fn pattern(&mut self, json: &Map<String, Value>, path: &Path<'_>) -> Option<Pattern> {
        let source = self.text(json, "pattern", path);
        if source.is_empty() {
            return None;
        }
        if let Some(known) = self.patterns.get(&source) {
            return Some(known.clone());
        }
        let path = path.field("pattern");
        if self.patterns.len() == MAX_PATTERNS {
            let detail = format!("must not have more than {MAX_PATTERNS} distinct patterns");
            self.problems.push(Violation::forbidden(&path, detail));
            return None;
        }
        match Pattern::new(&source) {
            Ok(pattern) => {
                self.patterns.insert(source, pattern.clone());
                Some(pattern)
            }
            Err(error) => {
                let detail = format!("must be a valid regular expression, but isn't: {error}");
                self.malformed(&path, &source.into(), &detail);
                None
            }
        }
    }

    fn rules(&mut self, json: &Map<String, Value>, path: &Path<'_>) -> Vec<Rule> {
        let path = path.field("x-kubernetes-validations");
        let rules = self.list(json, "x-kubernetes-validations", &path);
        let before = self.rules;
        self.rules += rules.len();
        if self.rules > MAX_RULES {
            if before <= MAX_RULES {
                let detail = format!("must not have more than {MAX_RULES} validation rules");
                self.problems.push(Violation::forbidden(&path, detail));
            }
            return Vec::new();
        }
        let rules = rules.iter().enumerate().map(|(index, rule)| {
            let path = path.index(index);
            let Some(rule) = rule.as_object() else {
                self.malformed(&path, rule, "must be an object");
                return Rule::default();
            };
            Rule {
                rule: self.text(rule, "rule", &path),
                message: self.text(rule, "message", &path),
                message_expression: self.text(rule, "messageExpression", &path),
                reason: self.optional_text(rule, "reason", &path),
                field_path: self.text(rule, "fieldPath", &path),
                optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
            }
        });
        rules.collect()
    }

    fn text(&mut self, json: &Map<String, Value>, word: &str, path: &Path<'_>) -> String {
        self.optional_text(json, word, path).unwrap_or_default()
    }

    fn optional_text(
        &mut self,
        json: &Map<String, Value>,
        word: &str,
        path: &Path<'_>,
    ) -> Option<String> {
        match json.get(word)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => {
                self.malformed(&path.field(word), other, "must be a string");
                None
            }
        }
    }

    fn texts(&mut self, json: &Map<String, Value>, word: &str, path: &Path<'_>) -> Vec<String> {
        let path = path.field(word);
        let mut texts = Vec::new();
        for (index, value) in self.list(json, word, &path).iter().enumerate() {
            match value.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.malformed(&path.index(index), value, "must be a string"),
            }
        }
        texts
    }

    fn flag(&mut self, json: &Map<String, Value>, word: &str, path: &Path<'_>) -> bool {
        match json.get(word) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.malformed(&path.field(word), other, "must be a boolean");
                false
            }
        }
    }

    fn double(&mut self, json: &Map<String, Value>, word: &str, path: &Path<'_>) -> Option<f64> {
        match json.get(word)? {
            Value::Null => None,
            Value::Number(number) => number.as_f64(),
            other => {
                self.malformed(&path.field(word), other, "must be a number");
                None
            }
        }
    }

    fn count(&mut self, json: &Map<String, Value>, word: &str, path: &Path<'_>) -> Option<i64> {
        let number = self.double(json, word, path)?;
        if !is_integer(number) {
            let value = json.get(word).cloned().unwrap_or_default();
            self.malformed(&path.field(word), &value, "must be an integer");
            return None;
        }
        Some(number as i64)
    }

    fn list<'j>(
        &mut self,
        json: &'j Map<String, Value>,
        word: &str,
        path: &Path<'_>,
    ) -> &'j [Value] {
        match json.get(word) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(values)) => values,
            Some(other) => {
                self.malformed(path, other, "must be a list");
                &[]
            }
        }
    }

    fn object<'j>(
        &mut self,
        json: &'j Map<String, Value>,
        word: &str,
        path: &Path<'_>,
    ) -> impl Iterator<Item = (&'j String, &'j Value)> + use<'j> {
        let found = match json.get(word) {
            None | Some(Value::Null) => None,
            Some(Value::Object(found)) => Some(found),
            Some(other) => {
                self.malformed(&path.field(word), other, "must be an object");
                None
            }
        };
        found.into_iter().flatten()
    }

    fn malformed(&mut self, path: &Path<'_>, value: &Value, detail: &str) {
        let violation = Violation::invalid(path, value.clone(), detail);
        self.problems.push(violation);
    }
}
