//! The fields of a new object, read from its JSON in one pass: most objects are created and never applied.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::element::{PathElement, equal};
use super::json::Name;
use super::set::{FieldSet, Node};
use super::shape::{Shape, Structure};
use crate::Kind;

/// Returns the fields in which a new object differs from one without any, as a comparison of both would. `None` if they
/// cannot be read in one pass, for example because a list has two entries of the same key.
pub(super) fn of_json(kind: &'static Kind, json: &[u8]) -> Option<FieldSet> {
    if kind.is_custom() {
        return None;
    }
    let structure = Structure::of(kind);
    let root = Added {
        shape: structure.shape(),
        empty: Some(kind.empty_document()),
    };
    let found = root.deserialize(&mut serde_json::Deserializer::from_slice(json));
    found.ok().map(|found| found.below)
}

/// The part of the set that is read from one value.
#[derive(Default)]
struct Found {
    is_member: bool,
    below: FieldSet,
}

impl Found {
    fn node(self, element: PathElement) -> Node {
        Node {
            element,
            is_member: self.is_member,
            below: self.below,
        }
    }
}

/// A value, and the one that an object without any fields has in its place.
#[derive(Clone, Copy)]
struct Added<'s> {
    shape: Shape<'s>,
    empty: Option<&'static Value>,
}

impl Added<'_> {
    /// Returns the path element of a field, and its value.
    fn child(self, name: &str) -> (PathElement, Self) {
        let (element, shape) = self.shape.named(name);
        let empty = self.empty.and_then(|empty| empty.get(name));
        (element, Self { shape, empty })
    }

    /// Returns what a value owned as a whole adds.
    fn leaf(self, value: &Value) -> Found {
        Found {
            is_member: self.empty.is_none_or(|empty| !equal(empty, value)),
            below: FieldSet::default(),
        }
    }

    /// Returns what an object or list with these nodes adds.
    fn parent(self, nodes: Vec<Node>, has_entries: bool, none: &Value) -> Found {
        if !has_entries {
            return self.leaf(none);
        }
        Found {
            is_member: self.empty.is_none(),
            below: FieldSet::of_nodes(nodes),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Added<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        match (self.shape, self.empty) {
            (Shape::Leaf, None) => {
                deserializer.deserialize_ignored_any(IgnoredAny)?;
                Ok(Found {
                    is_member: true,
                    below: FieldSet::default(),
                })
            }
            (Shape::Leaf, Some(_)) => {
                let value: Value = serde::Deserialize::deserialize(deserializer)?;
                Ok(self.leaf(&value))
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Added<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(self.leaf(&Value::Null))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut nodes = Vec::new();
        let mut has_entries = false;
        while let Some(name) = map.next_key_seed(Name)? {
            has_entries = true;
            let (element, value) = self.child(&name);
            let found = map.next_value_seed(value)?;
            if found.is_member || !found.below.is_empty() {
                nodes.push(found.node(element));
            }
        }
        Ok(self.parent(nodes, has_entries, &Value::Object(serde_json::Map::new())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(Entry(self.shape))? {
            nodes.push(node);
        }
        let has_entries = !nodes.is_empty();
        let found = self.parent(nodes, has_entries, &Value::Array(Vec::new()));
        let mut pairs = found.below.nodes().windows(2);
        match pairs.any(|pair| pair[0].element == pair[1].element) {
            true => Err(A::Error::custom("two entries have the same key")),
            false => Ok(found),
        }
    }
}

/// An entry of a list with keys, or of a set.
struct Entry<'s>(Shape<'s>);

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        if self.0.has_keys() {
            return deserializer.deserialize_map(self);
        }
        let value: Value = serde::Deserialize::deserialize(deserializer)?;
        let element = self.0.entry(&value).map_err(D::Error::custom)?;
        Ok(member(element, FieldSet::default()))
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with a key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let entries = Added {
            shape: self.0.entries(),
            empty: None,
        };
        let mut keys = Vec::new();
        let mut nodes = Vec::new();
        while let Some(name) = map.next_key_seed(Name)? {
            let (element, value) = entries.child(&name);
            if let (true, PathElement::Field(name)) = (self.0.is_key(&name), &element) {
                keys.push((name.clone(), map.next_value()?));
                nodes.push(member(element, FieldSet::default()));
            } else {
                nodes.push(map.next_value_seed(value)?.node(element));
            }
        }
        let element = self.0.with_keys(keys).map_err(A::Error::custom)?;
        // The fields of an entry that is owned as a whole are not.
        let below = match entries.shape {
            Shape::Leaf => FieldSet::default(),
            _ => FieldSet::of_nodes(nodes),
        };
        Ok(member(element, below))
    }
}

const fn member(element: PathElement, below: FieldSet) -> Node {
    Node {
        element,
        is_member: true,
        below,
    }
}
