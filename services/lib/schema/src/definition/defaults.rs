//! Defaults that are valid themselves.

use serde_json::{Map, Value, json};
use setpoint_cel::Node;

use crate::path::Path;
use crate::violation::Violation;
use crate::{embedded, prune, value};

/// Checks the defaults of a structural schema.
pub(super) fn check(node: &Node, path: &Path<'_>) -> Vec<Violation> {
    let mut checker = Checker { found: Vec::new() };
    checker.node(node, true, &Place::Outside, path);
    checker.found
}

/// The position of a default with respect to the metadata of its object.
enum Place<'a> {
    Outside,
    /// Inside of `apiVersion`, `kind` or `metadata`: the names of the fields that lead there.
    Meta(Vec<Step<'a>>),
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

impl<'a> Place<'a> {
    fn enter(&self, step: Step<'a>, begins: bool) -> Place<'a> {
        match self {
            Place::Meta(steps) => Place::Meta(steps.iter().copied().chain([step]).collect()),
            Place::Outside if begins => Place::Meta(vec![step]),
            Place::Outside => Place::Outside,
        }
    }
}

struct Checker {
    found: Vec<Violation>,
}

impl Checker {
    fn node(&mut self, node: &Node, is_root: bool, place: &Place<'_>, path: &Path<'_>) {
        let is_resource = is_root || node.embedded_resource;
        let place = if is_resource { &Place::Outside } else { place };
        if let Some(default) = &node.default {
            let found = match place {
                Place::Outside => outside(node, default, is_resource, &path.field("default")),
                Place::Meta(steps) => inside(node, default, steps, &path.field("default")),
            };
            self.found.extend(found);
        }
        // Upstream does not follow the values of maps: their defaults only replace nulls.
        if let Some(items) = &node.items {
            self.node(
                items,
                false,
                &place.enter(Step::Item, false),
                &path.field("items"),
            );
        }
        let properties = path.field("properties");
        for (name, child) in &node.properties {
            let begins = is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            let place = place.enter(Step::Field(name), begins);
            self.node(child, false, &place, &properties.key(name));
        }
    }
}

fn outside(node: &Node, default: &Value, is_resource: bool, path: &Path<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut pruned = default.clone();
    prune::prune(&mut pruned, node, is_resource);
    if &pruned != default {
        found.push(Violation::invalid(
            path,
            default.clone(),
            "must not have unknown fields",
        ));
    }
    let mut later = Vec::new();
    embedded::check(node, default, path, &mut later);
    if later.is_empty() {
        later = value::validate(node, default, None, &path.to_string());
    }
    found.extend(later);
    found
}

/// Checks a default inside of metadata by the object that it would be in.
fn inside(node: &Node, default: &Value, steps: &[Step<'_>], path: &Path<'_>) -> Vec<Violation> {
    let object = surround(default, steps);
    let mut found = Vec::new();
    embedded::resource(&object, &Path::ROOT, &mut found);
    if !found.is_empty() {
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        let text = match texts.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let detail = format!("must result in valid metadata: {text}");
        return vec![Violation::invalid(path, default.clone(), detail)];
    }
    value::validate(node, default, None, &path.to_string())
}

fn surround(default: &Value, steps: &[Step<'_>]) -> Map<String, Value> {
    let value = steps
        .iter()
        .rev()
        .fold(default.clone(), |inner, step| match step {
            Step::Field(name) => json!({*name: inner}),
            Step::Item => json!([inner]),
        });
    let mut object = Map::new();
    object.insert("apiVersion".into(), "validation/v1".into());
    object.insert("kind".into(), "Validation".into());
    if let Value::Object(fields) = value {
        object.extend(fields);
    }
    object
}
