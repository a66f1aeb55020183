//! The values of fields that are missing.

use serde_json::{Map, Value};
use setpoint_cel::Node;

use crate::path::Path;
use crate::violation::Violation;

/// The JSON values that defaults may add to one object. A default in the items of a list is added once for each item,
/// so that a small request could become a huge object.
const MAX_ADDED: usize = 1_000_000;

/// Drops nulls of fields that are neither nullable nor have a default, then sets defaults.
///
/// # Errors
///
/// Returns a violation if the object would grow beyond all measure; it is then without some of its defaults.
pub(crate) fn fill(value: &mut Value, node: &Node) -> Result<(), Violation> {
    drop_nulls(value, Some(node));
    let mut filler = Filler { room: MAX_ADDED };
    filler.value(value, node).ok_or_else(|| {
        let detail = "the defaults of its fields make the object too large";
        Violation::forbidden(&Path::ROOT, detail)
    })
}

fn drop_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let node = node.and_then(|node| node.field(name));
            let dropped = value.is_null()
                && node.is_some_and(|node| !node.nullable && node.default.is_none());
            if !dropped {
                drop_nulls(value, node);
            }
            !dropped
        }),
        Value::Array(items) => {
            let node = node.and_then(|node| node.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item, node));
        }
        _ => {}
    }
}

/// Its functions return `None` when there is no room left.
struct Filler {
    room: usize,
}

impl Filler {
    fn value(&mut self, value: &mut Value, node: &Node) -> Option<()> {
        match value {
            Value::Object(fields) => self.object(fields, node),
            Value::Array(items) => {
                let Some(node) = node.items.as_deref() else {
                    return Some(());
                };
                items
                    .iter_mut()
                    .try_for_each(|item| self.replace_null(item, node))
            }
            _ => Some(()),
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>, node: &Node) -> Option<()> {
        for (name, child) in &node.properties {
            let missing = fields
                .get(name)
                .is_none_or(|value| value.is_null() && !child.nullable);
            if let (true, Some(default)) = (missing, &child.default) {
                fields.insert(name.clone(), self.copy(default)?);
            }
        }
        for (name, value) in fields.iter_mut() {
            match node.properties.get(name) {
                Some(child) => self.value(value, child)?,
                None => {
                    if let Some(child) = node.values() {
                        self.replace_null(value, child)?;
                    }
                }
            }
        }
        Some(())
    }

    /// Sets the default of an item or of a value in a map, which only replaces a null.
    fn replace_null(&mut self, value: &mut Value, node: &Node) -> Option<()> {
        if let (true, false, Some(default)) = (value.is_null(), node.nullable, &node.default) {
            *value = self.copy(default)?;
        }
        self.value(value, node)
    }

    fn copy(&mut self, default: &Value) -> Option<Value> {
        self.room = self.room.checked_sub(weight(default))?;
        Some(default.clone())
    }
}

/// The values in a value; a string counts for its length.
fn weight(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(weight).sum::<usize>() + fields.len(),
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 16,
        _ => 1,
    }
}
