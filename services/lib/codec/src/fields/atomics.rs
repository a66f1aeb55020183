//! The parts of a configuration that are owned as a whole: applying one would remove what it leaves out.

use serde_json::Value;
use setpoint_schema::{ListType, Node};

use super::merge;
use super::shape::{Shape, Structure};
use super::validate::validate;
use crate::Kind;
use crate::rules::{self, Field, Message};

/// Merges a configuration into an object as server-side apply does, without owners of fields. What the configuration
/// does not name is kept. It must not have atomic lists, maps or objects.
///
/// # Errors
/// If the configuration does not fit the kind, or cannot be merged, in the wording of Kubernetes.
pub fn merge_unowned(kind: &Kind, live: &Value, config: &Value) -> Result<Value, String> {
    validate(kind, config)
        .map_err(|problem| format!("failed to convert patch object to typed object: {problem}"))?;
    let structure = Structure::of(kind);
    let mut atomics = Vec::new();
    of_object(structure.shape(), config, &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    let merged = merge::merge(structure.shape(), live, config);
    merged.map_err(|error| format!("failed to merge patch: {error}"))
}

fn of_object(shape: Shape<'_>, value: &Value, found: &mut Vec<String>) {
    match shape {
        Shape::Struct(message) => of_message(message, value, "", found),
        Shape::Resource(node) => of_resource(node, value, "", found),
        _ => {}
    }
}

fn of_message(message: &'static Message, value: &Value, path: &str, found: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        if let Some(field) = message.field(name) {
            of_field(field, value, &format!("{path}.{name}"), found);
        }
    }
}

fn of_field(field: &'static Field, value: &Value, path: &str, found: &mut Vec<String>) {
    let shapes = field.shapes();
    if is_atomic(shapes.whole, value) {
        found.push(path.to_owned());
    }
    match value {
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                let path = format!("{path}[{index}]");
                if is_atomic(shapes.element, entry) {
                    found.push(path.clone());
                }
                of_element(field, entry, &path, found);
            }
        }
        // As upstream, the values of maps are not looked into.
        Value::Object(_) if !field.descriptor.is_map() => of_element(field, value, path, found),
        _ => {}
    }
}

fn of_element(field: &'static Field, value: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(message) = field.message() {
        of_message(message, value, path, found);
    }
}

fn is_atomic(shape: Shape<'_>, value: &Value) -> bool {
    matches!(shape, Shape::Leaf) && (value.is_object() || value.is_array())
}

/// Looks into an object with `kind`, `apiVersion` and metadata.
fn of_resource(node: Option<&Node>, value: &Value, path: &str, found: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match name.as_str() {
            "metadata" => {
                if let Some(metadata) = rules::message("k8s.meta.v1.ObjectMeta") {
                    of_message(metadata, value, &path, found);
                }
            }
            name => of_property(
                node.and_then(|node| node.properties.get(name)),
                value,
                &path,
                found,
            ),
        }
    }
}

fn of_property(node: Option<&Node>, value: &Value, path: &str, found: &mut Vec<String>) {
    let Some(node) = node else { return };
    match value {
        Value::Object(_) if node.embedded_resource => of_resource(Some(node), value, path, found),
        Value::Object(fields) => {
            if node.is_atomic_map() {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                of_property(node.properties.get(name), value, &path, found);
            }
        }
        Value::Array(entries) => {
            if node.list_type() == ListType::Atomic {
                found.push(path.to_owned());
            }
            for (index, entry) in entries.iter().enumerate() {
                let path = format!("{path}[{index}]");
                of_property(node.items.as_deref(), entry, &path, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn merged(live: Value, config: Value) -> Result<Value, String> {
        let kind = kinds().by_kind("apps/v1", "Deployment").unwrap();
        merge_unowned(kind, &live, &config)
    }

    fn with(containers: Value) -> Value {
        json!({ "spec": { "replicas": 1, "template": { "spec": { "containers": containers } } } })
    }

    /// The cases of upstream's `TestApplyConfiguration`.
    #[test]
    fn lists_with_keys_are_merged_and_what_is_not_named_is_kept() {
        let env = |entries: Value| with(json!([{ "name": "n", "env": entries }]));
        let twice = json!([
            { "name": "test", "value": "a" }, { "name": "test", "value": "b" }, { "name": "foo", "value": "bar" },
        ]);
        for (live, config, expected) in [
            (
                with(json!([{ "name": "x" }])),
                json!({ "spec": { "template": { "spec": { "containers": [{ "name": "y" }] } } } }),
                with(json!([{ "name": "x" }, { "name": "y" }])),
            ),
            (
                with(json!([{ "name": "x" }, { "name": "y" }])),
                json!({ "spec": { "template": { "spec": { "containers": [{ "name": "y", "image": "i" }] } } } }),
                with(json!([{ "name": "x" }, { "name": "y", "image": "i" }])),
            ),
            // Entries that an object has twice are kept unless the configuration names them.
            (
                env(twice.clone()),
                json!({ "spec": { "replicas": 1 } }),
                env(twice.clone()),
            ),
            (
                env(twice),
                json!({ "spec": { "template": { "spec": { "containers": [
                    { "name": "n", "env": [{ "name": "test", "value": "c" }] },
                ] } } } }),
                env(json!([{ "name": "test", "value": "c" }, { "name": "foo", "value": "bar" }])),
            ),
        ] {
            assert_eq!(merged(live, config), Ok(expected));
        }
    }

    #[test]
    fn what_is_owned_as_a_whole_is_not_merged() {
        let selector = json!({ "spec": { "selector": { "matchLabels": { "l": "v" } } } });
        let commands = json!({ "spec": { "template": { "spec": { "containers": [
            { "name": "a", "args": ["-v"], "env": [{ "name": "e", "valueFrom": { "fieldRef": { "fieldPath": "p" } } }] },
        ] } } } });
        let labels = json!({ "metadata": { "labels": { "a": "b" }, "finalizers": ["a/b"] } });
        let words = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ";
        let container = ".spec.template.spec.containers[0]";
        for (config, error) in [
            (selector, Some(format!("{words}.spec.selector"))),
            (
                commands,
                Some(format!(
                    "{words}{container}.args, {container}.env[0].valueFrom.fieldRef"
                )),
            ),
            (labels, None),
            (
                json!({ "spec": { "replicasx": 1 } }),
                Some("failed to convert patch object to typed object: .spec.replicasx: field not declared in schema".into()),
            ),
        ] {
            assert_eq!(merged(with(json!([])), config).err(), error);
        }
    }
}
