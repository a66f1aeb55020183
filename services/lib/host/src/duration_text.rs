//! Durations in settings.

use std::borrow::Cow;
use std::time::Duration;

use jiff::fmt::serde::unsigned_duration::friendly::compact::required as text;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserializer, Serializer};

/// A duration as text such as `15s`, `300ms` or `1m 30s`, for `#[serde(with = "DurationText")]`.
pub struct DurationText;

impl DurationText {
    /// Writes a duration as text.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        text::serialize(duration, serializer)
    }

    /// Reads a duration from text.
    ///
    /// # Errors
    /// If the text is no duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        text::deserialize(deserializer)
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
