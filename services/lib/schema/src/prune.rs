//! The removal of fields that a schema does not know.

use serde_json::{Map, Value};
use setpoint_cel::Node;

use crate::embedded::is_metadata_field;

/// Fields that every object with a type has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields of `value` and returns their paths, sorted. `is_resource`: the value has the fields of every
/// object.
pub(crate) fn prune(value: &mut Value, node: &Node, is_resource: bool) -> Vec<String> {
    let mut pruner = Pruner::default();
    let is_resource = is_resource || node.embedded_resource;
    pruner.value(value, Some(node), is_resource);
    pruner.removed.sort();
    pruner.removed
}

#[derive(Default)]
struct Pruner {
    path: String,
    removed: Vec<String>,
}

impl Pruner {
    fn value(&mut self, value: &mut Value, node: Option<&Node>, is_resource: bool) {
        let preserves = node.is_some_and(|node| node.preserve_unknown_fields);
        match value {
            Value::Object(fields) => self.object(fields, node, is_resource, preserves),
            Value::Array(items) => self.list(items, node, preserves),
            _ => {}
        }
    }

    fn object(
        &mut self,
        fields: &mut Map<String, Value>,
        node: Option<&Node>,
        is_resource: bool,
        preserves: bool,
    ) {
        fields.retain(|name, value| {
            if is_resource && META_FIELDS.contains(&name.as_str()) {
                if name == "metadata" && !self.path.is_empty() {
                    self.metadata(value);
                }
                return true;
            }
            let known = node.is_some_and(|node| {
                node.properties.contains_key(name) || node.additional_properties.is_some()
            });
            let end = self.enter_field(name);
            match known {
                true => {
                    let child = node.and_then(|node| node.field(name));
                    self.value(
                        value,
                        child,
                        child.is_some_and(|child| child.embedded_resource),
                    );
                }
                false if preserves => {}
                false => self.removed.push(self.path.clone()),
            }
            self.path.truncate(end);
            known || preserves
        });
    }

    /// Removes unknown fields of the metadata of an embedded object.
    fn metadata(&mut self, metadata: &mut Value) {
        let Some(fields) = metadata.as_object_mut() else {
            return;
        };
        let path = &self.path;
        let removed = &mut self.removed;
        fields.retain(|name, value| {
            let known = is_metadata_field(name);
            if !known {
                removed.push(format!("{path}.metadata.{name}"));
            }
            known && !(name == "creationTimestamp" && value.is_null())
        });
    }

    /// Where fields are preserved, they are preserved in the items of lists, too, though not in the values of known
    /// fields.
    fn list(&mut self, items: &mut [Value], node: Option<&Node>, preserves: bool) {
        let node = node.and_then(|node| node.items.as_deref());
        for (index, item) in items.iter_mut().enumerate() {
            let end = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            match preserves {
                true => self.preserved(item, node),
                false => self.value(item, node, node.is_some_and(|node| node.embedded_resource)),
            }
            self.path.truncate(end);
        }
    }

    fn preserved(&mut self, value: &mut Value, node: Option<&Node>) {
        let Some(node) = node else { return };
        match value {
            Value::Object(fields) => self.object(fields, Some(node), node.embedded_resource, true),
            Value::Array(items) => self.list(items, Some(node), true),
            _ => {}
        }
    }

    /// Appends a field to the path. Returns the length before.
    fn enter_field(&mut self, name: &str) -> usize {
        let end = self.path.len();
        if end > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        end
    }
}
