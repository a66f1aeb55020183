//! Types whose JSON is not an object of their fields: bytes as base64, numbers, raw JSON, and bare arrays.

use bytes::Bytes;
use serde::de::{self, Deserializer};
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};

use crate::apiextensions::Json;
use crate::meta::{FieldsV1, RawExtension, Verbs};
use crate::{authentication, authorization, certificates, lenient};

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
        let map: BTreeMap<String, String> = lenient::map(deserializer)?;
        map.into_iter()
            .map(|(key, text)| Ok((key, base64_bytes::decode(&text)?)))
            .collect()
    }
}

/// An optional number, which is written without a fraction if it has none, as Go writes it: `100`, not `100.0`.
pub mod double {
    use super::*;

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and a number that it changes is not equal to it"
    )]
    pub fn serialize<S: Serializer>(
        number: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Some(number) = *number else {
            return serializer.serialize_none();
        };
        let whole = number as i64;
        // The sign of -0.0 would be lost, and the bound of i64 rounds to a number outside of it.
        let is_exact = whole as f64 == number && whole != i64::MAX;
        match is_exact && !(whole == 0 && number.is_sign_negative()) {
            true => serializer.serialize_i64(whole),
            false => serializer.serialize_f64(number),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Option::deserialize(deserializer)
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
            /// Transcodes the JSON, which works below flattened fields, unlike borrowing, and removes white space.
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
raw! { FieldsV1 Json RawExtension }

macro_rules! bare_array {
    ($($array:ty)*) => {$(
        impl Serialize for $array {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.items.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $array {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let items = lenient::list(deserializer)?;
                Ok(Self { items })
            }
        }
    )*};
}
bare_array! {
    Verbs
    authentication::AttestationValue authentication::ExtraValue
    authorization::ExtraValue
    certificates::ExtraValue
}
