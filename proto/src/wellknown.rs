//! Types whose JSON is not that of their fields: times, quantities, raw JSON, and the tolerance that Kubernetes shows when reading.

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::de::{self, Deserializer, Visitor};
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};

use crate::meta::{FieldsV1, IntOrString, MicroTime, Quantity, RawExtension, Time, Verbs};

/// Reads `null` as unset, as Go does for any field.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Is it what a message has when nothing was set?
pub fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Bytes as base64.
pub mod base64_bytes {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    pub fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        decode(&text)
    }

    pub(super) fn decode<E: de::Error>(text: &str) -> Result<Bytes, E> {
        let bytes = BASE64_STANDARD
            .decode(text)
            .map_err(|error| E::custom(format_args!("illegal base64 data: {error}")))?;
        Ok(bytes.into())
    }
}

/// A map of bytes as base64.
pub mod base64_map {
    use std::collections::BTreeMap;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    pub fn serialize<S: Serializer>(
        map: &BTreeMap<String, Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            map.iter()
                .map(|(key, bytes)| (key, BASE64_STANDARD.encode(bytes))),
        )
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, Bytes>, D::Error> {
        let map: BTreeMap<String, Option<String>> = nullable(deserializer)?;
        map.into_iter()
            .map(|(key, text)| Ok((key, base64_bytes::decode(&text.unwrap_or_default())?)))
            .collect()
    }
}

macro_rules! time {
    ($time:ident, $format:literal) => {
        impl $time {
            /// The moment, or `None` for the zero time.
            pub fn timestamp(&self) -> Option<Timestamp> {
                Timestamp::new(self.seconds?, self.nanos.unwrap_or_default()).ok()
            }
        }

        impl From<Timestamp> for $time {
            fn from(moment: Timestamp) -> Self {
                Self {
                    seconds: Some(moment.as_second()),
                    nanos: Some(moment.subsec_nanosecond()),
                }
            }
        }

        impl fmt::Display for $time {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.timestamp() {
                    Some(moment) => {
                        write!(f, "{}", moment.to_zoned(TimeZone::UTC).strftime($format))
                    }
                    None => Ok(()),
                }
            }
        }

        impl Serialize for $time {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.timestamp() {
                    Some(_) => serializer.collect_str(self),
                    None => serializer.serialize_none(),
                }
            }
        }

        impl<'de> Deserialize<'de> for $time {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match Option::<String>::deserialize(deserializer)? {
                    None => Ok(Self::default()),
                    Some(text) => match text.parse::<Timestamp>() {
                        Ok(moment) => Ok(moment.into()),
                        Err(_) => Err(de::Error::custom(format_args!(
                            "parsing time {text:?}: not a time in RFC 3339 form"
                        ))),
                    },
                }
            }
        }
    };
}
time!(Time, "%Y-%m-%dT%H:%M:%SZ");
time!(MicroTime, "%Y-%m-%dT%H:%M:%S.%6fZ");

impl Quantity {
    /// As written, for example `100m`.
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
        serializer.serialize_str(&self.string)
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
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Scalar)? {
            serde_json::Value::String(text) => Self::new(text),
            serde_json::Value::Null => Self::default(),
            number => Self::new(number.to_string()),
        })
    }
}

impl IntOrString {
    const STRING: i64 = 1;

    /// A plain number.
    pub fn int(value: i32) -> Self {
        Self {
            int_val: value,
            ..Self::default()
        }
    }

    /// A string such as `25%`.
    pub fn string(value: impl Into<String>) -> Self {
        Self {
            r#type: Self::STRING,
            str_val: value.into(),
            ..Self::default()
        }
    }

    /// The string, if it is one.
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

macro_rules! raw {
    ($($raw:ident)*) => {$(
        impl Serialize for $raw {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if self.raw.is_empty() {
                    return serializer.serialize_none();
                }
                let mut json = serde_json::Deserializer::from_slice(&self.raw);
                serde_transcode::transcode(&mut json, serializer).map_err(S::Error::custom)
            }
        }

        impl<'de> Deserialize<'de> for $raw {
            /// Transcodes rather than borrows, so that it works below a flattened field and compacts white space.
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut json = Vec::new();
                serde_transcode::transcode(deserializer, &mut serde_json::Serializer::new(&mut json))
                    .map_err(de::Error::custom)?;
                Ok(match json.as_slice() {
                    b"null" => Self::default(),
                    _ => Self { raw: json.into() },
                })
            }
        }
    )*};
}
raw! { FieldsV1 RawExtension }

impl Serialize for Verbs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Verbs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = nullable(deserializer)?;
        Ok(Self { items })
    }
}
