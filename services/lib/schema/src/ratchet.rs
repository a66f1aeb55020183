//! The values of an update beside the values that they replace. Errors of a part that an update does not change are
//! suppressed, so that objects can be changed that became invalid by a new schema.

use std::collections::HashMap;

use serde_json::{Map, Value};
use setpoint_cel::{ListType, Node};

/// A value, the value that it replaces, and the schema of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correlated<'a> {
    new: &'a Value,
    old: &'a Value,
    node: &'a Node,
}

impl<'a> Correlated<'a> {
    pub(crate) fn new(new: &'a Value, old: &'a Value, node: &'a Node) -> Self {
        Self { new, old, node }
    }

    /// Returns the value that is replaced.
    pub(crate) fn old(&self) -> &'a Value {
        self.old
    }

    /// Returns a field that both values have and the schema knows.
    pub(crate) fn field(&self, name: &str) -> Option<Correlated<'a>> {
        let node = self.node.field(name)?;
        Some(Self::new(self.new.get(name)?, self.old.get(name)?, node))
    }

    /// Returns the items of both lists by their keys, if the list is of type map.
    pub(crate) fn list(&self) -> Option<CorrelatedList<'a>> {
        let node = self.node.items.as_deref()?;
        let (new, old) = (self.new.as_array()?, self.old.as_array()?);
        if self.node.list_type() != ListType::Map {
            return None;
        }
        let keys = &self.node.list_map_keys;
        let mut by_key = HashMap::new();
        for item in old {
            by_key.entry(key_of(item, keys)?).or_insert(item);
        }
        Some(CorrelatedList {
            new,
            by_key,
            keys,
            node,
        })
    }

    /// Whether the values are equal. The order of items does not count in a list of type map.
    pub(crate) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                new.len() == old.len() && self.has_same_items(new)
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && self.has_same_fields(new, old)
            }
            (new, old) => new == old,
        }
    }

    fn has_same_items(&self, new: &[Value]) -> bool {
        // Items whose keys are repeated correlate with the first of them, so that the lists are compared as they are,
        // too.
        if self.new == self.old {
            return true;
        }
        self.list().is_some_and(|list| {
            let mut items = (0..new.len()).map(|index| list.item(index));
            items.all(|item| item.is_some_and(|item| item.is_unchanged()))
        })
    }

    fn has_same_fields(&self, new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
        new.iter().all(|(name, value)| match self.field(name) {
            Some(field) => field.is_unchanged(),
            None => old.get(name) == Some(value),
        })
    }
}

/// Two lists of type map.
#[derive(Debug)]
pub(crate) struct CorrelatedList<'a> {
    new: &'a [Value],
    by_key: HashMap<String, &'a Value>,
    keys: &'a [String],
    node: &'a Node,
}

impl<'a> CorrelatedList<'a> {
    /// Returns an item of the new list with the one of the old list that has its keys.
    pub(crate) fn item(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.new.get(index)?;
        let old = self.by_key.get(&key_of(new, self.keys)?)?;
        Some(Correlated::new(new, old, self.node))
    }
}

/// Returns the values of the keys of an item, as one text.
pub(crate) fn key_of(item: &Value, keys: &[String]) -> Option<String> {
    let fields = item.as_object()?;
    let values: Vec<_> = keys.iter().map(|key| fields.get(key)).collect();
    serde_json::to_string(&values).ok()
}
