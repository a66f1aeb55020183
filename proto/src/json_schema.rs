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
