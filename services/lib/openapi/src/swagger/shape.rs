//! The types of the fields of a document of OpenAPI v2, as upstream's decoder checks them: one that has another type is
//! refused. `null` reads as unset.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

type Named<T> = Option<Values<T, NAMED>>;
type List<T> = Option<Values<T, LIST>>;
type OneOrMany<T> = Option<Values<T, { ONE | LIST }>>;
type OneOrFlag<T> = Option<Values<T, { ONE | FLAG }>>;

/// Checks a document.
pub(super) fn check(document: &Value) -> Result<(), String> {
    let checked = Document::deserialize(document);
    checked.map(drop).map_err(|error| error.to_string())
}

/// Defines structs that are only deserialized.
macro_rules! shapes {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $of:ty,)* })*) => {$(
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "the fields have only to have these types")]
        $(#[$meta])*
        struct $name { $($(#[$field_meta])* $field: $of,)* }
    )*};
}

shapes! {
    Document {
        paths: Named<PathItem>,
        definitions: Named<Schema>,
        parameters: Named<Parameter>,
    }
    PathItem {
        get: Option<Operation>,
        put: Option<Operation>,
        post: Option<Operation>,
        delete: Option<Operation>,
        options: Option<Operation>,
        head: Option<Operation>,
        patch: Option<Operation>,
        parameters: List<Parameter>,
    }
    Operation {
        description: Option<String>,
        summary: Option<String>,
        operation_id: Option<String>,
        tags: List<String>,
        consumes: List<String>,
        produces: List<String>,
        schemes: List<String>,
        deprecated: Option<bool>,
        parameters: List<Parameter>,
        responses: Named<Response>,
    }
    Parameter {
        #[serde(rename = "$ref")]
        reference: Option<String>,
        name: Option<String>,
        r#in: Option<String>,
        description: Option<String>,
        required: Option<bool>,
        unique_items: Option<bool>,
        r#type: Option<String>,
        format: Option<String>,
        schema: Option<Schema>,
    }
    Response {
        #[serde(rename = "$ref")]
        reference: Option<String>,
        description: Option<String>,
        schema: Option<Schema>,
    }
    Schema {
        #[serde(rename = "$ref")]
        reference: Option<String>,
        description: Option<String>,
        title: Option<String>,
        format: Option<String>,
        pattern: Option<String>,
        r#type: OneOrMany<Type>,
        required: List<String>,
        r#enum: List<IgnoredAny>,
        multiple_of: Option<f64>,
        maximum: Option<f64>,
        minimum: Option<f64>,
        exclusive_maximum: Option<bool>,
        exclusive_minimum: Option<bool>,
        max_length: Option<i64>,
        min_length: Option<i64>,
        max_items: Option<i64>,
        min_items: Option<i64>,
        max_properties: Option<i64>,
        min_properties: Option<i64>,
        unique_items: Option<bool>,
        properties: Named<Schema>,
        pattern_properties: Named<Schema>,
        definitions: Named<Schema>,
        all_of: List<Schema>,
        any_of: List<Schema>,
        one_of: List<Schema>,
        not: Option<Values<Schema, ONE>>,
        items: OneOrMany<Schema>,
        additional_properties: OneOrFlag<Schema>,
        additional_items: OneOrFlag<Schema>,
        #[serde(rename = "x-kubernetes-group-version-kind")]
        kinds: List<GroupVersionKind>,
    }
    GroupVersionKind {
        group: Option<String>,
        version: Option<String>,
        kind: Option<String>,
    }
}

/// The type of a value. kubectl reads no document with others.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    Null,
    File,
}

/// The forms of a value.
const ONE: u8 = 1;
const LIST: u8 = 2;
const NAMED: u8 = 4;
const FLAG: u8 = 8;

/// A value in one of some forms. What is in it is checked and dropped, so that no document takes much memory.
struct Values<T, const FORMS: u8>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const FORMS: u8> Deserialize<'de> for Values<T, FORMS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, const FORMS: u8> Values<T, FORMS> {
    fn one<D: Deserializer<'de>>(self, one: D) -> Result<Self, D::Error> {
        match FORMS & ONE {
            0 => Err(D::Error::custom(format_args!("expected {self}"))),
            _ => T::deserialize(one).map(|_| self),
        }
    }
}

impl<T, const FORMS: u8> fmt::Display for Values<T, FORMS> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = [
            (ONE, "one"),
            (LIST, "a list"),
            (NAMED, "an object"),
            (FLAG, "a boolean"),
        ];
        let own = forms.iter().filter(|(form, _)| FORMS & form != 0);
        let own: Vec<_> = own.map(|(_, name)| *name).collect();
        out.write_str(&own.join(" or "))
    }
}

impl<'de, T: Deserialize<'de>, const FORMS: u8> Visitor<'de> for Values<T, FORMS> {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self, E> {
        match FORMS & FLAG {
            0 => Err(E::invalid_type(serde::de::Unexpected::Bool(flag), &self)),
            _ => Ok(self),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self, E> {
        self.one(StrDeserializer::new(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        if FORMS & LIST == 0 {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        while list.next_element::<T>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        if FORMS & NAMED == 0 {
            return self.one(MapAccessDeserializer::new(map));
        }
        while map.next_entry::<IgnoredAny, T>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_the_wrong_type_makes_a_document_unusable() {
        let with = |schema: Value| json!({ "paths": {}, "definitions": { "a": schema } });
        for schema in [
            json!({ "type": ["string", "null"], "items": [{}], "additionalProperties": false }),
            json!({ "properties": { "type": { "type": "string" } }, "required": null }),
            json!({ "x-kubernetes-group-version-kind": [{ "group": "", "version": "v1", "kind": "A" }] }),
        ] {
            check(&with(schema)).unwrap();
        }
        for schema in [
            json!("a"),
            json!({ "type": 5 }),
            json!({ "type": "text" }),
            json!({ "properties": [] }),
            json!({ "properties": { "b": { "$ref": {} } } }),
            json!({ "x-kubernetes-group-version-kind": { "kind": "A" } }),
        ] {
            check(&with(schema.clone())).expect_err(&schema.to_string());
        }
        check(&json!({ "paths": { "/a": { "get": [] } } })).unwrap_err();
        check(&json!([])).unwrap_err();
    }
}
