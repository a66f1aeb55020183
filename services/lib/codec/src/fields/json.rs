//! The JSON of a set of fields: `fieldsV1`.

use serde_json::{Map, Value};

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
        let value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        match value {
            Value::Object(object) => Ok(read(object)?.1),
            Value::Null => Ok(Self::default()),
            _ => Err("expected an object of fields".to_owned()),
        }
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

/// Returns whether the path that ends here is in the set, and the paths below.
fn read(object: Map<String, Value>) -> Result<(bool, FieldSet), String> {
    let mut is_member = false;
    let mut nodes = Vec::with_capacity(object.len());
    for (key, value) in object {
        if key == SELF {
            is_member = true;
            continue;
        }
        let Some(element) = PathElement::parse(&key)? else {
            continue;
        };
        let Value::Object(inner) = value else {
            return Err(format!("expected an object in {key:?}"));
        };
        let (is_member, below) = read(inner)?;
        nodes.push(Node {
            element,
            is_member,
            below,
        });
    }
    is_member |= nodes.is_empty();
    Ok((is_member, FieldSet::of_any_nodes(nodes)))
}
