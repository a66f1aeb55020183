//! The structure of a value, by the options of its field or, in an object of a custom kind, by its schema.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use setpoint_proto::options::List;
use setpoint_schema::Node;

use super::custom;
use super::element::PathElement;
use crate::rules::{self, Field, Message};
use crate::{Definition, Kind};

/// The structure of the objects of a kind. It keeps the schema of a custom kind alive.
pub(crate) struct Structure<'k> {
    kind: &'k Kind,
    definition: Option<Arc<Definition>>,
}

impl<'k> Structure<'k> {
    pub(crate) fn of(kind: &'k Kind) -> Self {
        Self {
            kind,
            definition: kind.is_custom().then(|| kind.definition()),
        }
    }

    /// Returns the shape of an object.
    pub(crate) fn shape(&self) -> Shape<'_> {
        match &self.definition {
            Some(definition) => Shape::Resource(definition.schema_root()),
            None => {
                rules::message(self.kind.message.full_name()).map_or(Shape::Leaf, Shape::Struct)
            }
        }
    }
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object or map, of whose fields each has a shape.
    Object,
    /// A list whose entries have identities.
    List,
    /// A value that is owned as a whole.
    Leaf,
}

/// The structure of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'s> {
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
    /// An object with `kind`, `apiVersion` and metadata, and the fields of a schema, if it has one.
    Resource(Option<&'s Node>),
    /// An object or map with a schema.
    Schema(&'s Node),
    /// A list of entries with keys, or a set, with a schema.
    Listed(&'s Node),
    /// A value without a schema: its objects are owned by their parts, its lists as a whole.
    Untyped,
}

impl Shape<'static> {
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
}

impl<'s> Shape<'s> {
    /// Returns the form of a value of this shape.
    pub(super) fn form(self, value: &Value) -> Form {
        match self {
            Self::Struct(_) | Self::Map(_) | Self::Resource(_) | Self::Schema(_) => Form::Object,
            Self::Keyed(_) | Self::Set | Self::Listed(_) => Form::List,
            Self::Untyped if value.is_object() => Form::Object,
            Self::Leaf | Self::Untyped => Form::Leaf,
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
            Self::Resource(node) => custom::part(node, name),
            Self::Schema(node) => custom::child(node, name),
            Self::Untyped => Some((Self::Untyped, false)),
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
            Self::Listed(node) if node.list_map_keys.is_empty() => in_set(entry),
            Self::Listed(node) => custom::keyed(node, entry),
            _ => Err("invalid indexing of non-associative list".to_owned()),
        }
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
            return Err(without_keys(&field.key));
        }
        Ok(PathElement::Key(keys))
    }

    /// Returns the shape of the entries of a list.
    pub(super) fn entries(self) -> Self {
        match self {
            Self::Keyed(field) => field.shapes().element,
            Self::Listed(node) => custom::entries(node),
            _ => Self::Leaf,
        }
    }

    /// Returns whether it is a list of entries with keys.
    pub(super) fn has_keys(self) -> bool {
        match self {
            Self::Keyed(_) => true,
            Self::Listed(node) => !node.list_map_keys.is_empty(),
            _ => false,
        }
    }
}

/// Returns the error of an entry without any of these keys.
pub(super) fn without_keys(keys: &[String]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
    let names = names.join(" ");
    format!(
        "associative list with keys has an element that omits all key fields [{names}] (and doesn't have default values for any key fields)"
    )
}

/// Returns the error of an entry that is not an object.
pub(super) const fn not_a_map(entry: &Value) -> &'static str {
    match entry {
        Value::Null => "associative list with keys may not have a null element",
        _ => "associative list with keys may not have non-map elements",
    }
}

fn keyed(field: &'static Field, entry: &Value) -> Result<PathElement, String> {
    let Value::Object(object) = entry else {
        return Err(not_a_map(entry).to_owned());
    };
    let keys = field.key.iter().filter_map(|key| {
        let value = object.get(key)?.clone();
        Some((Cow::Borrowed(key.as_str()), value))
    });
    Shape::Keyed(field).with_keys(keys.collect())
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
