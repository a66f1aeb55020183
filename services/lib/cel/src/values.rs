//! The values of expressions. Parts of objects are read when an expression asks for them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map as Fields, Value};
use setpoint_model::quantity::Amount;

use super::library::authz::Asked;
use super::library::regex::Compiled;
use super::library::{semver::Version, url::Url};
use super::meter::Failure;
use super::patch::Struct;
use super::types::Object;
use super::{names, time};
use crate::go::Num;
use crate::node::{ListType, Node};

/// A value of an expression. It may borrow from the object that is validated.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    /// A typed object of a patch.
    Struct(Struct<'a>),
    Optional(Option<Arc<Val<'a>>>),
    /// A type, by its name.
    Type(&'static str),
    Url(Arc<Url>),
    Ip(IpAddr),
    Cidr(Cidr),
    Quantity(Amount),
    Semver(Arc<Version>),
    /// A named format of strings.
    Format(&'static str),
    /// A regular expression that was compiled with its rule.
    Pattern(Arc<Compiled>),
    /// A question about permissions.
    Asked(Arc<Asked<'a>>),
    /// A value without a schema: it can only be compared.
    Unknown(&'a Value),
}

/// A network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cidr {
    pub(super) address: IpAddr,
    pub(super) prefix: u8,
}

/// A string, of the object or of its own.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// A list, of the object or computed.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Made(Arc<Vec<Val<'a>>>),
    Read {
        items: &'a [Value],
        node: &'a Node,
    },
    /// A list without a schema.
    Json(&'a [Value]),
}

/// A map, or an object with fields.
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    Made(Arc<BTreeMap<Key, Val<'a>>>),
    Read {
        fields: &'a Fields<String, Value>,
        schema: Object<'a>,
    },
    /// A map without a schema.
    Json(&'a Fields<String, Value>),
}

/// The key of a computed map. Whole numbers are one kind of key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Number(i128),
    String(Arc<str>),
}

impl<'a> From<String> for Val<'a> {
    fn from(text: String) -> Self {
        Val::String(Text::Shared(text.into()))
    }
}

impl<'a> From<&str> for Val<'a> {
    fn from(text: &str) -> Self {
        Val::String(Text::Shared(text.into()))
    }
}

impl<'a> From<Vec<Val<'a>>> for Val<'a> {
    fn from(items: Vec<Val<'a>>) -> Self {
        Val::List(List::Made(Arc::new(items)))
    }
}

impl<'a> Val<'a> {
    pub(super) fn some(value: Val<'a>) -> Self {
        Val::Optional(Some(Arc::new(value)))
    }

    /// Reads a part of an object.
    ///
    /// # Errors
    ///
    /// Returns an error if the value does not have the type of its schema.
    pub(super) fn read(
        value: &'a Value,
        node: &'a Node,
        is_resource: bool,
    ) -> Result<Self, Failure> {
        if node.int_or_string {
            return match value {
                Value::String(text) => Ok(Val::String(Text::Borrowed(text))),
                Value::Number(number) => match Num::of(number) {
                    Num::Int(int) => Ok(Val::Int(int)),
                    Num::Float(_) => Err(mistyped("a string or integer")),
                },
                Value::Null if node.nullable => Ok(Val::Null),
                _ => Err(mistyped("a string or integer")),
            };
        }
        match (value, node.schema_type.as_str()) {
            (Value::Null, _) if node.nullable => Ok(Val::Null),
            (Value::Null, _) => Err(Failure::error(
                "invalid data, got null for schema with nullable=false",
            )),
            (Value::Object(fields), "object") => {
                let schema = Object { node, is_resource };
                Ok(Val::Map(Map::Read { fields, schema }))
            }
            (Value::Array(items), "array") => Ok(Val::List(List::Read { items, node })),
            (Value::String(text), "string") => formatted(text, &node.format),
            (Value::Bool(flag), "boolean") => Ok(Val::Bool(*flag)),
            (Value::Number(number), "number") => Ok(Val::Double(Num::of(number).as_f64())),
            (Value::Number(number), "integer") => match Num::of(number) {
                Num::Int(int) => Ok(Val::Int(int)),
                // The validator takes 1.0 for an integer.
                Num::Float(float) if crate::go::is_integer(float) => Ok(Val::Int(float as i64)),
                Num::Float(_) => Err(mistyped("int")),
            },
            (value, "") => Ok(Val::Unknown(value)),
            (_, expected) => Err(mistyped(expected)),
        }
    }

    /// Reads JSON without a schema.
    pub(super) fn of_json(value: &'a Value) -> Self {
        match value {
            Value::Null => Val::Null,
            Value::Bool(flag) => Val::Bool(*flag),
            Value::Number(number) => match Num::of(number) {
                Num::Int(int) => Val::Int(int),
                Num::Float(float) => Val::Double(float),
            },
            Value::String(text) => Val::String(Text::Borrowed(text)),
            Value::Array(items) => Val::List(List::Json(items)),
            Value::Object(fields) => Val::Map(Map::Json(fields)),
        }
    }

    /// Returns the name of the type of the value.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::String(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::List(_) => "list",
            Val::Map(map) => match map.is_object() {
                true => "object",
                false => "map",
            },
            Val::Struct(_) => "object",
            Val::Optional(_) => "optional_type",
            Val::Type(_) => "type",
            Val::Url(_) => "kubernetes.URL",
            Val::Ip(_) => "net.IP",
            Val::Cidr(_) => "net.CIDR",
            Val::Quantity(_) => "kubernetes.Quantity",
            Val::Semver(_) => "kubernetes.Semver",
            Val::Format(_) => "kubernetes.NamedFormat",
            Val::Pattern(_) => "string",
            Val::Asked(asked) => asked.type_name,
            Val::Unknown(_) => "unknown",
        }
    }

    /// Returns the length that the cost of a call depends on: bytes of a string, items of a list; 1 of values without
    /// parts.
    pub(super) fn size(&self) -> u64 {
        let size = match self {
            Val::String(text) => text.len(),
            Val::Bytes(bytes) => bytes.len(),
            Val::Pattern(pattern) => pattern.source().len(),
            Val::List(list) => list.len(),
            Val::Map(map) => map.len(),
            Val::Optional(Some(inner)) => return inner.size(),
            _ => 1,
        };
        size as u64
    }
}

fn mistyped(expected: &str) -> Failure {
    Failure::Error(format!("invalid data, expected {expected}"))
}

fn formatted<'a>(text: &'a str, format: &str) -> Result<Val<'a>, Failure> {
    match format {
        "byte" => {
            let bytes = super::base64(text);
            let bytes = bytes
                .ok_or_else(|| Failure::Error(format!("Invalid byte formatted string {text}")))?;
            Ok(Val::Bytes(bytes.into()))
        }
        "duration" => {
            let duration = time::duration(text);
            let duration =
                duration.ok_or_else(|| Failure::Error(format!("Invalid duration {text}")))?;
            Ok(Val::Duration(duration))
        }
        "date" | "date-time" => {
            let found = match format {
                "date" => time::date(text),
                _ => time::timestamp(text),
            };
            let found = found.ok_or_else(|| {
                Failure::Error(format!("Invalid {format} formatted string {text}"))
            })?;
            Ok(Val::Timestamp(found))
        }
        _ => Ok(Val::String(Text::Borrowed(text))),
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            List::Made(items) => items.len(),
            List::Read { items, .. } | List::Json(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Result<Val<'a>, Failure>> {
        match self {
            List::Made(items) => items.get(index).cloned().map(Ok),
            List::Read { items, node } => {
                let value = items.get(index)?;
                Some(match node.items.as_deref() {
                    Some(node) => Val::read(value, node, node.embedded_resource),
                    None => Ok(Val::Unknown(value)),
                })
            }
            List::Json(items) => items.get(index).map(Val::of_json).map(Ok),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Val<'a>, Failure>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the list type.
    pub(super) fn list_type(&self) -> ListType {
        match self {
            List::Made(_) | List::Json(_) => ListType::Atomic,
            List::Read { node, .. } => node.list_type(),
        }
    }

    /// Returns the identifiers of the fields that are the keys of a list of type map.
    pub(super) fn keys(&self) -> &'a [String] {
        match self {
            List::Made(_) | List::Json(_) => &[],
            List::Read { node, .. } => &node.list_map_keys,
        }
    }
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Made(entries) => entries.len(),
            Map::Read { fields, .. } | Map::Json(fields) => fields.len(),
        }
    }

    /// Whether the map is an object: its keys are identifiers, and fields that are null are missing.
    pub(super) fn is_object(&self) -> bool {
        match self {
            Map::Made(_) | Map::Json(_) => false,
            Map::Read { schema, .. } => schema.is_resource || schema.node.values().is_none(),
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &Val<'_>) -> Result<Option<Val<'a>>, Failure> {
        match self {
            Map::Made(entries) => Ok(Key::of(key).and_then(|key| entries.get(&key).cloned())),
            Map::Read { fields, schema } => match key {
                Val::String(name) if self.is_object() => match names::unescape(name) {
                    Some(name) => self.property(fields, *schema, &name),
                    None => Ok(None),
                },
                Val::String(name) => self.property(fields, *schema, name),
                _ => Ok(None),
            },
            Map::Json(fields) => Ok(match key {
                Val::String(name) => fields.get(&**name).map(Val::of_json),
                _ => None,
            }),
        }
    }

    fn property(
        &self,
        fields: &'a Fields<String, Value>,
        schema: Object<'a>,
        name: &str,
    ) -> Result<Option<Val<'a>>, Failure> {
        let Some(value) = fields.get(name) else {
            return Ok(None);
        };
        if self.is_object() && value.is_null() {
            return Ok(None);
        }
        let node = match self.is_object() {
            true => schema.property(name),
            false => schema.node.values(),
        };
        match node {
            Some(node) => Val::read(value, node, node.embedded_resource).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the keys.
    pub(super) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Map::Made(entries) => entries.keys().map(Key::value).collect(),
            Map::Read { fields, .. } => {
                let fields: &'a Fields<String, Value> = fields;
                let keys = fields.keys().filter_map(|name| match self.is_object() {
                    true => names::escape(name).map(|name| Val::from(&*name)),
                    false => Some(Val::String(Text::Borrowed(name))),
                });
                keys.collect()
            }
            Map::Json(fields) => {
                let names = fields.keys();
                names
                    .map(|name| Val::String(Text::Borrowed(name)))
                    .collect()
            }
        }
    }
}

impl Key {
    /// Returns the key that a value is, if it can be one.
    pub(super) fn of(value: &Val<'_>) -> Option<Self> {
        Some(match value {
            Val::Bool(flag) => Key::Bool(*flag),
            Val::Int(int) => Key::Number((*int).into()),
            Val::Uint(int) => Key::Number((*int).into()),
            Val::Double(double) if double.fract() == 0.0 && double.abs() < 1e18 => {
                Key::Number(*double as i128)
            }
            Val::String(text) => Key::String((&**text).into()),
            _ => return None,
        })
    }

    fn value<'a>(&self) -> Val<'a> {
        match self {
            Key::Bool(flag) => Val::Bool(*flag),
            Key::Number(number) => match i64::try_from(*number) {
                Ok(int) => Val::Int(int),
                Err(_) => Val::Uint(u64::try_from(*number).unwrap_or(u64::MAX)),
            },
            Key::String(text) => Val::String(Text::Shared(Arc::clone(text))),
        }
    }
}
