//! The structure of a value, by the options of its field.

use std::borrow::Cow;

use serde_json::Value;
use setpoint_proto::options::List;

use super::element::PathElement;
use crate::Kind;
use crate::rules::{self, Field, Message};

/// The structure of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
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

    /// Returns the shape of a field. It is cached in [`Field::shapes`].
    pub(crate) fn of(field: &'static Field) -> Self {
        let descriptor = &field.descriptor;
        match (descriptor.is_list(), field.list()) {
            (true, List::Map) => Self::Keyed(field),
            (true, List::Set) => Self::Set,
            // A list is atomic unless its field says otherwise.
            (true, _) | (_, List::Atomic) => Self::Leaf,
            _ if descriptor.is_map() => Self::Map(field),
            _ => Self::of_element(field),
        }
    }

    /// Returns the shape of the entries of a list or map, or of a single value.
    pub(crate) fn of_element(field: &'static Field) -> Self {
        match field.message() {
            Some(message) if !message.is_atomic => Self::Struct(message),
            _ => Self::Leaf,
        }
    }

    /// Returns the shape of a value in an object, and whether the object declares it; `None` if nothing is known of it.
    pub(super) fn child(self, name: &str) -> Option<(Self, bool)> {
        match self {
            Self::Struct(message) => match message.field(name) {
                Some(field) => Some((field.shapes().whole, true)),
                None if message.has_kind && ["apiVersion", "kind"].contains(&name) => {
                    Some((Self::Leaf, true))
                }
                None => None,
            },
            Self::Map(field) => Some((field.shapes().element, false)),
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

    /// Returns the path element of a field, and the shape of its value.
    pub(super) fn named(self, name: &str) -> (PathElement, Self) {
        if let Self::Struct(message) = self
            && let Some(field) = message.field(name)
        {
            let name = Cow::Borrowed(field.descriptor.json_name());
            return (PathElement::Field(name), field.shapes().whole);
        }
        let shape = self.child(name).map_or(Self::Leaf, |(shape, _)| shape);
        (PathElement::Field(name.to_owned().into()), shape)
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

    /// Returns whether the field of an entry of a list is one of its keys.
    pub(super) fn is_key(self, name: &str) -> bool {
        matches!(self, Self::Keyed(field) if field.key.iter().any(|key| key == name))
    }

    /// Returns the path element of an entry with these keys.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn with_keys(
        self,
        mut keys: Vec<(Cow<'static, str>, Value)>,
    ) -> Result<PathElement, String> {
        let Self::Keyed(field) = self else {
            return Err("invalid indexing of non-associative list".to_owned());
        };
        for key in &field.key {
            if !keys.iter().any(|(name, _)| name == key) {
                keys.extend(default(field, key).map(|value| (Cow::Borrowed(key.as_str()), value)));
            }
        }
        keys.sort_by(|(one, _), (two, _)| one.cmp(two));
        if keys.is_empty() {
            let names: Vec<_> = field.key.iter().map(|key| format!("{key:?}")).collect();
            let names = names.join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{names}] (and doesn't have default values for any key fields)"
            ));
        }
        Ok(PathElement::Key(keys))
    }

    /// Returns the shape of the entries of a list.
    pub(super) fn entries(self) -> Self {
        match self {
            Self::Keyed(field) => field.shapes().element,
            _ => Self::Leaf,
        }
    }
}

fn keyed(field: &'static Field, entry: &Value) -> Result<PathElement, String> {
    let problem = match entry {
        Value::Object(object) => {
            let keys = field.key.iter().filter_map(|key| {
                let value = object.get(key)?.clone();
                Some((Cow::Borrowed(key.as_str()), value))
            });
            return Shape::Keyed(field).with_keys(keys.collect());
        }
        Value::Null => "associative list with keys may not have a null element",
        _ => "associative list with keys may not have non-map elements",
    };
    Err(problem.to_owned())
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
