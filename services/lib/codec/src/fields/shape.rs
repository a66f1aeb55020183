//! The structure of a value, by the options of its field.

use std::borrow::Cow;

use serde_json::Value;
use setpoint_proto::options::List;

use super::element::PathElement;
use crate::Kind;
use crate::rules::{self, Field, Message};

/// The structure of a value.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// An object with known fields.
    Struct(&'static Message),
    /// An object with any keys; its values are the elements of the field.
    Map(&'static Field),
    /// A list of entries with keys.
    Keyed(&'static Field),
    /// A list of different scalars.
    Set,
    /// A value that is owned as a whole: a scalar, or an atomic list, map or object.
    Leaf,
}

impl Shape {
    pub(super) fn root(kind: &Kind) -> Self {
        rules::message(kind.message.full_name()).map_or(Self::Leaf, Self::Struct)
    }

    pub(super) fn of(field: &'static Field) -> Self {
        let descriptor = &field.descriptor;
        match (descriptor.is_list(), field.list()) {
            (true, List::Map) => Self::Keyed(field),
            (true, List::Set) => Self::Set,
            // A list is atomic unless its field says otherwise.
            (true, _) | (_, List::Atomic) => Self::Leaf,
            _ if descriptor.is_map() => Self::Map(field),
            _ => Self::element(field),
        }
    }

    /// Returns the shape of the entries of a list or map, or of a single value.
    pub(super) fn element(field: &'static Field) -> Self {
        match field.message() {
            Some(message) if !message.is_atomic => Self::Struct(message),
            _ => Self::Leaf,
        }
    }

    /// Returns the shape of a value in an object, and whether the object declares it; `None` if nothing is known of it.
    pub(super) fn child(self, name: &str) -> Option<(Self, bool)> {
        match self {
            Self::Struct(message) => match message.field(name) {
                Some(field) => Some((Self::of(field), true)),
                None if message.has_kind && ["apiVersion", "kind"].contains(&name) => {
                    Some((Self::Leaf, true))
                }
                None => None,
            },
            Self::Map(field) => Some((Self::element(field), false)),
            _ => None,
        }
    }

    /// Returns the path element of a field. The name of a known field is not copied.
    pub(super) fn field(self, name: &str) -> PathElement {
        let known = match self {
            Self::Struct(message) => message.field(name),
            _ => None,
        };
        PathElement::Field(match known {
            Some(field) => Cow::Borrowed(field.descriptor.json_name()),
            None => Cow::Owned(name.to_owned()),
        })
    }

    /// Returns the path element of an entry of a list.
    ///
    /// # Errors
    /// If the entry has no key, or cannot be in a set.
    pub(super) fn entry(self, entry: &Value) -> Result<PathElement, String> {
        match self {
            Self::Keyed(field) => keyed(field, entry),
            Self::Set => in_set(entry),
            _ => Err("invalid indexing of non-associative list".to_owned()),
        }
    }

    /// Returns the shape of the entries of a list.
    pub(super) fn entries(self) -> Self {
        match self {
            Self::Keyed(field) => Self::element(field),
            _ => Self::Leaf,
        }
    }
}

fn keyed(field: &'static Field, entry: &Value) -> Result<PathElement, String> {
    let problem = match entry {
        Value::Object(object) => {
            let keys = field.key.iter().filter_map(|key| {
                let value = object.get(key).cloned().or_else(|| default(field, key));
                Some((Cow::Borrowed(key.as_str()), value?))
            });
            let mut keys: Vec<_> = keys.collect();
            keys.sort_by(|(one, _), (two, _)| one.cmp(two));
            if !keys.is_empty() {
                return Ok(PathElement::Key(keys));
            }
            let names: Vec<_> = field.key.iter().map(|key| format!("{key:?}")).collect();
            let names = names.join(" ");
            format!(
                "associative list with keys has an element that omits all key fields [{names}] (and doesn't have default values for any key fields)"
            )
        }
        Value::Null => "associative list with keys may not have a null element".to_owned(),
        _ => "associative list with keys may not have non-map elements".to_owned(),
    };
    Err(problem)
}

/// Returns the default of a key. Only the protocol of a port has one.
fn default(field: &Field, key: &str) -> Option<Value> {
    let ports = ["ContainerPort", "ServicePort"];
    let is_port = |message: &'static Message| ports.contains(&message.name.as_str());
    (key == "protocol" && field.message().is_some_and(is_port)).then(|| Value::from("TCP"))
}

fn in_set(entry: &Value) -> Result<PathElement, String> {
    let problem = match entry {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(scalar.clone())),
    };
    Err(problem.to_owned())
}
