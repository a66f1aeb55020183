//! The types of expressions, and those of schemas.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::names;
use crate::node::Node;

/// The longest name of an object, which rules can read without a schema.
const MAX_NAME: i64 = 253;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'n> {
    /// A type that is known when the expression is evaluated.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Type<'n>>),
    Map(Box<Type<'n>>, Box<Type<'n>>),
    Object(Object<'n>),
    /// A typed object of a patch, by the name of its type.
    Struct(Arc<str>),
    Optional(Box<Type<'n>>),
    /// The type of types.
    Kind,
    /// A type of a library, by its name.
    Opaque(&'static str),
    /// A type that a signature leaves open.
    Param(char),
}

/// The schema of an object with fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'n> {
    pub(super) node: &'n Node,
    /// Whether the object has `apiVersion`, `kind` and `metadata`, declared or not.
    pub(super) is_resource: bool,
}

impl PartialEq for Object<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.node, other.node)
    }
}

/// The fields that every resource has.
struct Meta {
    text: Node,
    metadata: Node,
}

static META: LazyLock<Meta> = LazyLock::new(|| {
    let text = |max| {
        let mut node = Node {
            schema_type: "string".into(),
            ..Node::default()
        };
        node.bounds.max_length = max;
        node
    };
    let mut metadata = Node {
        schema_type: "object".into(),
        ..Node::default()
    };
    let names = [("name", MAX_NAME), ("generateName", MAX_NAME - 1)];
    let names = names.map(|(name, max)| (name.to_owned(), text(Some(max))));
    metadata.properties.extend(names);
    Meta {
        text: text(None),
        metadata,
    }
});

impl<'n> Object<'n> {
    /// Returns the schema of a property, whether or not expressions can refer to it.
    pub(super) fn property(self, name: &str) -> Option<&'n Node> {
        match name {
            "kind" | "apiVersion" if self.is_resource => Some(&META.text),
            "metadata" if self.is_resource => Some(&META.metadata),
            _ => self.node.properties.get(name),
        }
    }

    /// Returns the schema and the type of the field that an identifier names.
    pub(super) fn field(self, identifier: &str) -> Option<(&'n Node, Type<'n>)> {
        let node = self.property(&names::unescape(identifier)?)?;
        Some((node, Type::of(node, node.embedded_resource)?))
    }
}

impl<'n> Type<'n> {
    /// Returns the type of the values of a schema. None if expressions cannot refer to them: nothing is known of values
    /// that only `x-kubernetes-preserve-unknown-fields` describes.
    pub(super) fn of(node: &'n Node, is_resource: bool) -> Option<Self> {
        if node.int_or_string {
            return Some(Type::Dyn);
        }
        Some(match node.schema_type.as_str() {
            "array" => {
                let items = node.items.as_deref()?;
                Type::list(Type::of(items, items.embedded_resource)?)
            }
            "object" => match node.values().filter(|_| !is_resource) {
                Some(values) => {
                    let values = Type::of(values, values.embedded_resource)?;
                    Type::Map(Box::new(Type::String), Box::new(values))
                }
                None => Type::Object(Object { node, is_resource }),
            },
            "string" => match node.format.as_str() {
                "byte" => Type::Bytes,
                "duration" => Type::Duration,
                "date" | "date-time" => Type::Timestamp,
                _ => Type::String,
            },
            "boolean" => Type::Bool,
            "number" => Type::Double,
            "integer" => Type::Int,
            _ => return None,
        })
    }

    pub(super) fn list(item: Self) -> Self {
        Type::List(Box::new(item))
    }

    pub(super) fn optional(inner: Self) -> Self {
        match inner {
            Type::Optional(_) => inner,
            other => Type::Optional(Box::new(other)),
        }
    }

    /// Whether values of this type have no parts.
    pub(super) fn is_scalar(&self) -> bool {
        matches!(
            self,
            Type::Null
                | Type::Bool
                | Type::Int
                | Type::Uint
                | Type::Double
                | Type::Timestamp
                | Type::Duration
                | Type::Kind
                | Type::Opaque(_)
        )
    }

    fn may_be_null(&self) -> bool {
        use Type::{Duration, Null, Object, Opaque, Optional, Struct, Timestamp};
        matches!(
            self,
            Null | Object(_) | Struct(_) | Opaque(_) | Optional(_) | Timestamp | Duration
        )
    }

    /// Returns the type that values of both types have, if there is one.
    pub(super) fn join(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            // The type of the items of an empty list.
            (Type::Param(_), other) | (other, Type::Param(_)) => other,
            (Type::Dyn, _) | (_, Type::Dyn) => Type::Dyn,
            (Type::Null, other) | (other, Type::Null) if other.may_be_null() => other,
            (Type::List(a), Type::List(b)) => Type::list(a.join(*b)?),
            (Type::Optional(a), Type::Optional(b)) => Type::Optional(Box::new(a.join(*b)?)),
            (Type::Map(k, v), Type::Map(l, w)) => {
                Type::Map(Box::new(k.join(*l)?), Box::new(v.join(*w)?))
            }
            (Type::Object(a), Type::Object(b)) if a == b => Type::Object(a),
            (Type::Struct(a), Type::Struct(b)) if a == b => Type::Struct(a),
            (Type::Opaque(a), Type::Opaque(b)) if a == b => Type::Opaque(a),
            (a, b) if a.is_plain() && std::mem::discriminant(&a) == std::mem::discriminant(&b) => a,
            _ => return None,
        })
    }

    /// Whether the type has no parameters.
    fn is_plain(&self) -> bool {
        use Type::{List, Map, Object, Opaque, Optional, Param, Struct};
        !matches!(
            self,
            List(_) | Map(..) | Object(_) | Struct(_) | Opaque(_) | Optional(_) | Param(_)
        )
    }
}

/// The types that a call gives to the open types of a signature.
#[derive(Default)]
pub(super) struct Bindings<'n>(Vec<(char, Type<'n>)>);

impl<'n> Bindings<'n> {
    /// Whether a value of the type can be an argument for the parameter.
    pub(super) fn accept(&mut self, parameter: &Type<'static>, argument: &Type<'n>) -> bool {
        match (parameter, argument) {
            (Type::Param(name), _) => self.bind(*name, argument),
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::List(p), Type::List(a)) | (Type::Optional(p), Type::Optional(a)) => {
                self.accept(p, a)
            }
            (Type::Map(p, q), Type::Map(a, b)) => self.accept(p, a) && self.accept(q, b),
            (parameter, argument) => parameter.clone().join(argument.clone()).is_some(),
        }
    }

    fn bind(&mut self, name: char, argument: &Type<'n>) -> bool {
        let Some((_, bound)) = self.0.iter_mut().find(|(known, _)| *known == name) else {
            self.0.push((name, argument.clone()));
            return true;
        };
        match bound.clone().join(argument.clone()) {
            Some(joined) => {
                *bound = joined;
                true
            }
            None => false,
        }
    }

    /// Returns a type of the signature with the types of the call.
    pub(super) fn resolve(&self, open: &Type<'static>) -> Type<'n> {
        match open {
            Type::Param(name) => {
                let bound = self.0.iter().find(|(known, _)| known == name);
                bound.map_or(Type::Dyn, |(_, bound)| bound.clone())
            }
            Type::List(item) => Type::list(self.resolve(item)),
            Type::Optional(inner) => Type::Optional(Box::new(self.resolve(inner))),
            Type::Map(key, value) => {
                Type::Map(Box::new(self.resolve(key)), Box::new(self.resolve(value)))
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => formatter.write_str("dyn"),
            Type::Null => formatter.write_str("null"),
            Type::Bool => formatter.write_str("bool"),
            Type::Int => formatter.write_str("int"),
            Type::Uint => formatter.write_str("uint"),
            Type::Double => formatter.write_str("double"),
            Type::String => formatter.write_str("string"),
            Type::Bytes => formatter.write_str("bytes"),
            Type::Timestamp => formatter.write_str("timestamp"),
            Type::Duration => formatter.write_str("duration"),
            Type::List(item) => write!(formatter, "list({item})"),
            Type::Map(key, value) => write!(formatter, "map({key}, {value})"),
            Type::Object(_) => formatter.write_str("object"),
            Type::Struct(name) => formatter.write_str(name),
            Type::Optional(inner) => write!(formatter, "optional_type({inner})"),
            Type::Kind => formatter.write_str("type"),
            Type::Opaque(name) => formatter.write_str(name),
            // The items of an empty list.
            Type::Param('_') => formatter.write_str("dyn"),
            Type::Param(name) => write!(formatter, "{name}"),
        }
    }
}
