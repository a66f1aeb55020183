//! An element of the path of a field, in the notation and order of Kubernetes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// An element of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object, or a key of a map.
    Field(Cow<'static, str>),
    /// An entry of a list with keys, by the values of its keys, sorted by name.
    Key(Vec<(Cow<'static, str>, Value)>),
    /// An entry of a set, by its value.
    Value(Value),
    /// An entry of a list by its position.
    Index(i64),
}

impl PathElement {
    /// Returns the element of a field.
    pub fn field(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Field(name.into())
    }

    /// Parses the notation of `fieldsV1`: `f:name`, `k:{…}`, `v:…` or `i:…`. `Ok(None)` for types of other versions.
    ///
    /// # Errors
    /// If it has no type, or what follows it is malformed.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let malformed = |error: serde_json::Error| error.to_string();
        let (of, rest) = text
            .split_at_checked(2)
            .ok_or_else(|| "key must be 2 characters long:".to_owned())?;
        Ok(Some(match of {
            "f:" => Self::Field(rest.to_owned().into()),
            "v:" => Self::Value(serde_json::from_str(rest).map_err(malformed)?),
            "i:" => Self::Index(
                rest.parse()
                    .map_err(|_| format!("invalid index {rest:?}"))?,
            ),
            "k:" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).map_err(malformed)?;
                let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
                Self::Key(fields.collect())
            }
            _ if of.ends_with(':') => return Ok(None),
            _ => return Err(format!("missing colon: {text}")),
        }))
    }

    /// Writes the notation of `fieldsV1`.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => out.extend(["f:", name]),
            Self::Value(value) => out.extend(["v:", &value.to_string()]),
            Self::Index(index) => out.extend(["i:", &index.to_string()]),
            Self::Key(fields) => {
                out.push_str("k:{");
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    let name = Value::from(name.as_ref());
                    out.extend([comma, &name.to_string(), ":", &value.to_string()]);
                }
                out.push('}');
            }
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(one), Self::Field(two)) => one.cmp(two),
            (Self::Value(one), Self::Value(two)) => order(one, two),
            (Self::Index(one), Self::Index(two)) => one.cmp(two),
            (Self::Key(one), Self::Key(two)) => {
                let pairs = one.iter().zip(two).map(|((name, value), (other, with))| {
                    name.cmp(other).then_with(|| order(value, with))
                });
                let first = pairs.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| one.len().cmp(&two.len()))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for PathElement {}

impl fmt::Display for PathElement {
    /// Writes `.name`, `[key="value"]`, `[="value"]` or `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(fields) => {
                let texts = fields.iter().map(|(name, value)| format!("{name}={value}"));
                write!(f, "[{}]", texts.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Compares two values: numbers come before strings, booleans, lists, objects and null.
pub(super) fn order(one: &Value, two: &Value) -> Ordering {
    const fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => order_numbers(one, two),
        (Value::String(one), Value::String(two)) => one.cmp(two),
        (Value::Bool(one), Value::Bool(two)) => one.cmp(two),
        (Value::Array(one), Value::Array(two)) => {
            let items = one.iter().zip(two).map(|(one, two)| order(one, two));
            let first = items.into_iter().find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&two.len()))
        }
        (Value::Object(one), Value::Object(two)) => {
            let entries = one.iter().zip(two).map(|((key, value), (other, with))| {
                key.cmp(other).then_with(|| order(value, with))
            });
            let first = entries.into_iter().find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&two.len()))
        }
        _ => rank(one).cmp(&rank(two)),
    }
}

fn order_numbers(one: &Number, two: &Number) -> Ordering {
    match (one.as_i64(), two.as_i64()) {
        (Some(one), Some(two)) => one.cmp(&two),
        _ => {
            let (one, two) = (one.as_f64(), two.as_f64());
            one.unwrap_or_default().total_cmp(&two.unwrap_or_default())
        }
    }
}

/// Returns whether two values are equal. Unlike for [`Value`], 1 equals 1.0.
pub(super) fn equal(one: &Value, two: &Value) -> bool {
    one == two || order(one, two).is_eq()
}
