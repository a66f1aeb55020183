//! The JSON of a set of fields: `fieldsV1`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::element::PathElement;
use super::set::{FieldSet, Node};

/// The key of the path that ends at an object, if others go on below.
const SELF: &str = ".";

impl FieldSet {
    /// Returns the JSON, with keys in the order of Kubernetes.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(512);
        let mut text = String::new();
        json.push(b'{');
        self.write(&mut json, &mut text);
        json.push(b'}');
        json
    }

    /// Writes the entries. `text` is a buffer.
    fn write(&self, json: &mut Vec<u8>, text: &mut String) {
        for node in self.nodes() {
            if !json.ends_with(b"{") {
                json.push(b',');
            }
            text.clear();
            node.element.write(text);
            write_key(text, json);
            json.extend_from_slice(b":{");
            if node.is_member && !node.below.is_empty() {
                json.extend_from_slice(br#"".":{}"#);
            }
            node.below.write(json, text);
            json.push(b'}');
        }
    }

    /// Reads the JSON. Elements of unknown types are ignored.
    ///
    /// # Errors
    /// If it is not an object of objects, or a key is malformed.
    pub fn from_json(json: &[u8]) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_slice(json);
        let read = Read.deserialize(&mut json).and_then(|read| {
            json.end()?;
            Ok(read)
        });
        Ok(read.map_err(|error| error.to_string())?.1)
    }
}

/// Writes a key with its quotes. Most need no escapes.
fn write_key(text: &str, json: &mut Vec<u8>) {
    let plain = |byte: u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
    if text.bytes().all(plain) {
        json.push(b'"');
        json.extend_from_slice(text.as_bytes());
        json.push(b'"');
    } else {
        json.extend_from_slice(Value::from(text).to_string().as_bytes());
    }
}

/// Reads whether the path that ends here is in the set, and the paths below.
struct Read;

impl<'de> DeserializeSeed<'de> for Read {
    type Value = (bool, FieldSet);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read {
    type Value = (bool, FieldSet);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fields")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((true, FieldSet::default()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut is_member = false;
        let mut nodes = Vec::new();
        while let Some(key) = map.next_key_seed(Name)? {
            if key == SELF {
                is_member = true;
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let Some(element) = PathElement::parse(&key).map_err(A::Error::custom)? else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let (is_member, below) = map.next_value_seed(Self)?;
            nodes.push(Node {
                element,
                is_member,
                below,
            });
        }
        is_member |= nodes.is_empty();
        Ok((is_member, FieldSet::of_any_nodes(nodes)))
    }
}

/// Reads a key without copying it, unless it has escapes.
pub(crate) struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
