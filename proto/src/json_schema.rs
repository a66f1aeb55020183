//! The parts of a JSON schema that have several forms in JSON: a schema, or else a boolean, a list of schemas, or a
//! list of strings.
//!
//! Schemas contain schemas, so the depth of what is read is bounded: JSON by serde_json, to 128 values, and protobuf by
//! prost, to 100 messages.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::apiextensions::{
    JsonSchemaProps, JsonSchemaPropsOrArray, JsonSchemaPropsOrBool, JsonSchemaPropsOrStringArray,
};
use crate::lenient::Object;

impl From<JsonSchemaProps> for JsonSchemaPropsOrBool {
    fn from(schema: JsonSchemaProps) -> Self {
        Self {
            allows: true,
            schema: Some(Box::new(schema)),
        }
    }
}

impl Serialize for JsonSchemaPropsOrBool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.schema {
            Some(schema) => schema.serialize(serializer),
            None => serializer.serialize_bool(self.allows),
        }
    }
}

impl Serialize for JsonSchemaPropsOrArray {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.schemas.as_slice() {
            [] => self.schema.serialize(serializer),
            schemas => schemas.serialize(serializer),
        }
    }
}

impl Serialize for JsonSchemaPropsOrStringArray {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.property.as_slice() {
            [] => self.schema.serialize(serializer),
            property => property.serialize(serializer),
        }
    }
}

/// The form that was found.
enum Form<T> {
    Schema(Box<JsonSchemaProps>),
    Bool(bool),
    List(Vec<T>),
    Null,
}

/// A type with several forms.
trait Forms: Sized {
    /// The type of the entries of a list.
    type Entry: for<'de> Deserialize<'de>;
    /// The forms, for errors.
    const EXPECTED: &'static str;

    /// Returns the value; `None` for a form that it does not have.
    fn from_form(form: Form<Self::Entry>) -> Option<Self>;
}

impl Forms for JsonSchemaPropsOrBool {
    type Entry = IgnoredAny;
    const EXPECTED: &'static str = "boolean or JSON schema";

    fn from_form(form: Form<Self::Entry>) -> Option<Self> {
        match form {
            Form::Schema(schema) => Some((*schema).into()),
            Form::Bool(allows) => Some(Self {
                allows,
                schema: None,
            }),
            Form::List(_) | Form::Null => None,
        }
    }
}

impl Forms for JsonSchemaPropsOrArray {
    type Entry = Object<JsonSchemaProps>;
    const EXPECTED: &'static str = "JSON schema or array of JSON schemas";

    fn from_form(form: Form<Self::Entry>) -> Option<Self> {
        match form {
            Form::Schema(schema) => Some(Self {
                schema: Some(schema),
                ..Self::default()
            }),
            Form::List(schemas) => Some(Self {
                schemas: schemas.into_iter().map(|Object(one)| one).collect(),
                ..Self::default()
            }),
            Form::Null => Some(Self::default()),
            Form::Bool(_) => None,
        }
    }
}

impl Forms for JsonSchemaPropsOrStringArray {
    type Entry = Option<String>;
    const EXPECTED: &'static str = "JSON schema or array of strings";

    fn from_form(form: Form<Self::Entry>) -> Option<Self> {
        match form {
            Form::Schema(schema) => Some(Self {
                schema: Some(*schema),
                ..Self::default()
            }),
            Form::List(names) => Some(Self {
                property: names.into_iter().map(Option::unwrap_or_default).collect(),
                ..Self::default()
            }),
            Form::Null => Some(Self::default()),
            Form::Bool(_) => None,
        }
    }
}

struct FormVisitor<T>(PhantomData<T>);

impl<T: Forms> FormVisitor<T> {
    fn value<E: Error>(form: Form<T::Entry>) -> Result<T, E> {
        let wrong = || E::custom(format_args!("{} expected", T::EXPECTED));
        T::from_form(form).ok_or_else(wrong)
    }
}

impl<'de, T: Forms> Visitor<'de> for FormVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Self::value(Form::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        Self::value(Form::Bool(value))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let schema = Box::deserialize(MapAccessDeserializer::new(map))?;
        Self::value(Form::Schema(schema))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Self::value(Form::List(entries))
    }
}

macro_rules! deserialize {
    ($($name:ty)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(FormVisitor(PhantomData))
            }
        }
    )*};
}
deserialize! { JsonSchemaPropsOrArray JsonSchemaPropsOrBool JsonSchemaPropsOrStringArray }

#[cfg(test)]
mod tests {
    use std::thread;

    use prost::Message as _;
    use serde_json::{Value, json};

    use super::*;

    /// The stack of a thread of tokio.
    const STACK: usize = 2 << 20;

    fn read(schema: &Value) -> JsonSchemaProps {
        serde_json::from_value(schema.clone()).unwrap()
    }

    /// Returns the JSON of a schema that was encoded as JSON, protobuf and JSON.
    fn round_trip(schema: &Value) -> String {
        let encoded = read(schema).encode_to_vec();
        let decoded = JsonSchemaProps::decode(&*encoded).unwrap();
        serde_json::to_string(&decoded).unwrap()
    }

    #[test]
    fn a_schema_round_trips_through_json_and_protobuf() {
        for schema in [
            json!({ "default": false }),
            json!({ "default": 0 }),
            json!({ "default": "" }),
            json!({ "default": {} }),
            json!({ "default": [] }),
            json!({ "default": { "a": [null, 1.5, 18_446_744_073_709_551_615_u64] } }),
            json!({ "enum": [null, 0, "", false, { "a": null }] }),
            json!({ "example": "x" }),
            json!({ "additionalProperties": false }),
            json!({ "additionalProperties": true }),
            json!({ "additionalProperties": {} }),
            json!({ "additionalProperties": { "type": "string" } }),
            json!({ "additionalItems": true }),
            json!({ "items": {} }),
            json!({ "items": { "type": "string" } }),
            json!({ "items": [{ "type": "string" }, {}] }),
            json!({ "dependencies": { "a": ["b", ""], "c": { "type": "string" } } }),
            json!({ "maximum": 0, "minimum": -5, "multipleOf": 100 }),
            json!({ "maximum": 0.5, "minimum": -9_007_199_254_740_993_i64, "multipleOf": 1e-9 }),
            json!({ "maxLength": 0, "minItems": 0, "maxProperties": 9_223_372_036_854_775_807_i64 }),
            json!({ "$ref": "#/x", "$schema": "http://json-schema.org/schema#", "id": "i" }),
            json!({ "not": { "not": {} }, "allOf": [{}, { "type": "object" }] }),
            json!({ "properties": { "a": {}, "b": { "nullable": true } } }),
            json!({ "x-kubernetes-preserve-unknown-fields": false }),
            json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"] }),
            json!({ "x-kubernetes-map-type": "atomic", "x-kubernetes-int-or-string": true }),
            json!({ "x-kubernetes-validations": [{ "rule": "self.a", "optionalOldSelf": false }] }),
        ] {
            let rounded = match &schema {
                // The nearest number that a double can have.
                one if one["minimum"] == -9_007_199_254_740_993_i64 => {
                    schema.to_string().replace("993", "992")
                }
                one => one.to_string(),
            };
            let found: Value = serde_json::from_str(&round_trip(&schema)).unwrap();
            assert_eq!(found.to_string(), rounded);
        }
    }

    #[test]
    fn null_is_an_unset_field() {
        let nulls = json!({ "default": null, "enum": null, "items": null, "additionalProperties": null, "maximum": null });
        assert_eq!(read(&nulls), JsonSchemaProps::default());
        assert_eq!(round_trip(&nulls), "{}");
    }

    #[test]
    fn another_form_is_an_error() {
        for (schema, expected) in [
            (
                r#"{"additionalProperties":[]}"#,
                "boolean or JSON schema expected",
            ),
            (
                r#"{"items":true}"#,
                "JSON schema or array of JSON schemas expected",
            ),
            (
                r#"{"items":"a"}"#,
                "expected JSON schema or array of JSON schemas",
            ),
            (r#"{"items":[["a"]]}"#, "expected an object"),
            (
                r#"{"dependencies":{"a":true}}"#,
                "JSON schema or array of strings expected",
            ),
        ] {
            let error = serde_json::from_str::<JsonSchemaProps>(schema).unwrap_err();
            assert!(error.to_string().contains(expected), "{schema}: {error}");
        }
    }

    /// Nested as deep as serde_json reads, in the form that has most schemas, then one deeper.
    #[test]
    fn deeply_nested_json_does_not_overflow_the_stack() {
        let nested = |field: &str, close: &str, depth: usize| {
            field.repeat(depth) + "{}" + &close.repeat(depth)
        };
        let read = move || {
            for field in [
                r#"{"not":"#,
                r#"{"items":"#,
                r#"{"additionalProperties":"#,
                r#"{"default":"#,
            ] {
                let deepest = nested(field, "}", 126);
                let schema: JsonSchemaProps = serde_json::from_str(&deepest).unwrap();
                let copy = serde_json::to_string(&schema.clone()).unwrap();
                assert_eq!(copy, deepest);
                let deeper = nested(field, "}", 128);
                let error = serde_json::from_str::<JsonSchemaProps>(&deeper).unwrap_err();
                assert!(
                    error.to_string().starts_with("recursion limit exceeded"),
                    "{error}"
                );
            }
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(read);
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn deeply_nested_protobuf_is_an_error() {
        let nested = |depth: usize| {
            let mut schema = JsonSchemaProps::default();
            for _ in 0..depth {
                let not = Some(Box::new(std::mem::take(&mut schema)));
                schema.not = not;
            }
            schema.encode_to_vec()
        };
        assert!(JsonSchemaProps::decode(&*nested(100)).is_ok());
        assert!(JsonSchemaProps::decode(&*nested(200)).is_err());
    }
}
