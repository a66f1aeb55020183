//! Reads the document of a file: strictly, so that a field that is not known is refused with its path.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

const GROUP: &str = "apiserver.config.k8s.io";
/// The versions of the group, whose documents have the same fields.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Decodes a document of a kind, in YAML or JSON.
///
/// # Errors
/// If it is malformed, of another kind, or has a field that is not known; with the path of the field.
pub(crate) fn decode<T: DeserializeOwned>(text: &[u8], kind: &str) -> Result<T, String> {
    let Value::Object(mut fields) = without_nulls(setpoint_document::yaml(text)?) else {
        return Err(format!("expected {kind}"));
    };
    check_kind(&mut fields, kind)?;
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let (path, problem) = (error.path().to_string(), error.into_inner().to_string());
        match problem.starts_with("unknown field") {
            true => format!("strict decoding error: unknown field {path:?}"),
            false => format!("{path}: Invalid value: {problem}"),
        }
    })
}

/// Removes the type of a document.
fn check_kind(fields: &mut Map<String, Value>, kind: &str) -> Result<(), String> {
    let [version, found] = ["apiVersion", "kind"].map(|name| {
        let found = fields.remove(name);
        let found = found.as_ref().and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    });
    let of_group = version.strip_prefix(GROUP);
    let known = of_group.and_then(|rest| rest.strip_prefix('/'));
    match known.is_some_and(|version| VERSIONS.contains(&version)) && found == kind {
        true => Ok(()),
        false => Err(format!(
            "no kind {found:?} is registered for version {version:?}: kind must be {kind} and apiVersion {GROUP}/v1"
        )),
    }
}

/// Returns a value without the fields that are null, which are not set.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| (name, without_nulls(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct Document {
        items: Vec<Item>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Item {
        name: String,
    }

    fn read(rest: &str) -> Result<Document, String> {
        let text = format!("apiVersion: {GROUP}/v1\nkind: Test\n{rest}");
        decode(text.as_bytes(), "Test")
    }

    #[test]
    fn what_is_wrong_is_told_with_its_path() {
        let found = read("items: [{name: a}, {name: null}]").unwrap();
        assert_eq!(found.items[1], Item::default());
        for (text, expected) in [
            (
                "items: [{name: a, other: b}]",
                "strict decoding error: unknown field \"items[0].other\"",
            ),
            (
                "items: [{name: 7}]",
                "items[0].name: Invalid value: invalid type: integer `7`, expected a string",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
        assert!(read("items: [").is_err());
        assert_eq!(
            decode::<Document>(b"[]", "Test").unwrap_err(),
            "expected Test"
        );
        let other = decode::<Document>(b"kind: Test\napiVersion: v1\n", "Test").unwrap_err();
        assert!(
            other.contains("kind must be Test and apiVersion apiserver.config.k8s.io/v1"),
            "{other}"
        );
    }
}
