//! Types that are strings or numbers in JSON: `Quantity` and `IntOrString`.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::meta::{IntOrString, Quantity};
use crate::quantity;

impl Quantity {
    /// Returns a quantity of this text, for example `100m`.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            string: text.into(),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.string)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self.string.as_str() {
            "" => "0",
            text => text,
        })
    }
}

/// A scalar that may be a string or a number.
struct Scalar;

impl Visitor<'_> for Scalar {
    type Value = serde_json::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.into())
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(number.into())
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(number.into())
    }
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(number.into())
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(serde_json::Value::Null)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    /// Accepts valid quantities only, and keeps their text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match deserializer.deserialize_any(Scalar)? {
            serde_json::Value::String(text) => text,
            serde_json::Value::Null => return Ok(Self::default()),
            number => number.to_string(),
        };
        quantity::parse(text.trim()).map_err(de::Error::custom)?;
        Ok(Self::new(text.trim()))
    }
}

impl IntOrString {
    const STRING: i64 = 1;

    /// Returns a number.
    pub fn int(value: i32) -> Self {
        Self {
            int_val: value,
            ..Self::default()
        }
    }

    /// Returns a string such as `25%`.
    pub fn string(value: impl Into<String>) -> Self {
        Self {
            r#type: Self::STRING,
            str_val: value.into(),
            ..Self::default()
        }
    }

    /// Returns the string; `None` for a number.
    pub fn as_str(&self) -> Option<&str> {
        (self.r#type == Self::STRING).then_some(&self.str_val)
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => f.write_str(text),
            None => write!(f, "{}", self.int_val),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_i32(self.int_val),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(Scalar)? {
            serde_json::Value::String(text) => Ok(Self::string(text)),
            serde_json::Value::Null => Ok(Self::default()),
            number => number
                .as_i64()
                .and_then(|number| i32::try_from(number).ok())
                .map(Self::int)
                .ok_or_else(|| de::Error::custom(format_args!("{number} is not a 32-bit integer"))),
        }
    }
}
