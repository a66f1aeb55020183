//! Converts YAML to JSON and back.
//!
//! Anchors and aliases expand a few lines of YAML to gigabytes; the limits of this module prevent that.

use bytes::Bytes;
use serde_json::Value;
use serde_saphyr::{Budget, DuplicateKeyPolicy, Error, Options};
use setpoint_proto::{ApiError, Reason};

/// The media type of YAML.
pub(super) const YAML: &str = "application/yaml";

/// The maximum number of nodes, aliases expanded: more than any object has that fits into etcd.
const NODES: usize = 200_000;
const DEPTH: usize = 64;

/// A document.
pub(super) struct Document {
    pub(super) json: Bytes,
    /// The first key that a mapping has twice. The last value applies; strict validation refuses it.
    pub(super) duplicate: Option<String>,
}

/// Converts a YAML document to JSON.
///
/// # Errors
/// `BadRequest` if it is malformed, more than one document, or beyond the limits.
pub(super) fn read(yaml: &[u8]) -> Result<Document, ApiError> {
    match parse(yaml, DuplicateKeyPolicy::Error) {
        Ok(json) => Ok(Document {
            json,
            duplicate: None,
        }),
        Err(Error::DuplicateMappingKey { key, location }) => {
            let key = key.unwrap_or_default();
            let line = location.line();
            let duplicate = format!("line {line}: key {key:?} already set in map");
            Ok(Document {
                json: parse(yaml, DuplicateKeyPolicy::LastWins).map_err(malformed)?,
                duplicate: Some(format!("yaml: unmarshal errors:\n  {duplicate}")),
            })
        }
        Err(error) => Err(malformed(error)),
    }
}

fn parse(yaml: &[u8], duplicates: DuplicateKeyPolicy) -> Result<Bytes, Error> {
    let mut options = options();
    options.duplicate_keys = duplicates;
    match serde_saphyr::from_slice_with_options::<Value>(yaml, options) {
        Ok(document) => Ok(document.to_string().into()),
        Err(Error::WithSnippet { error, .. }) => Err(*error),
        Err(error) => Err(error),
    }
}

fn malformed(error: Error) -> ApiError {
    let message = format!("error converting YAML to JSON: {error}");
    ApiError::new(Reason::BadRequest, message)
}

/// Converts a JSON document to YAML, with sorted keys.
pub(super) fn write(json: &[u8]) -> Result<String, ApiError> {
    let failed = |error: String| ApiError::new(Reason::InternalError, error);
    let document: Value =
        serde_json::from_slice(json).map_err(|error| failed(error.to_string()))?;
    serde_saphyr::to_string(&document).map_err(|error| failed(error.to_string()))
}

fn options() -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = NODES;
    budget.max_events = 4 * NODES;
    budget.max_depth = DEPTH;
    budget.max_recorded_anchor_events = NODES;
    budget.max_recorded_anchor_bytes = 4 << 20;
    budget.max_total_scalar_bytes = 8 << 20;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = NODES;
    options
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_value(yaml: &str) -> Value {
        serde_json::from_slice(&read(yaml.as_bytes()).unwrap().json).unwrap()
    }

    fn reason(yaml: &[u8]) -> Reason {
        read(yaml).err().unwrap().reason
    }

    #[test]
    fn the_last_of_two_values_applies_and_the_key_is_named() {
        let document = read(b"a: 1\nb:\n  c: 1\n  c: 2\n").unwrap();
        assert_eq!(document.json, r#"{"a":1,"b":{"c":2}}"#);
        let problem = "yaml: unmarshal errors:\n  line 4: key \"c\" already set in map";
        assert_eq!(document.duplicate.unwrap(), problem);
    }

    /// Checks K21.
    #[test]
    fn a_written_document_reads_back_equal() {
        let document = json!({
            "kind": "ConfigMap",
            "metadata": { "name": "a", "labels": {}, "finalizers": [] },
            "data": {
                "bool": "true", "yes": "yes", "number": "1e3", "octal": "0o7", "null": "null", "empty": "",
                "lines": "a\n  b\n\nc\n", "colon": "a: b", "hash": "a #b", "tab": "\ta", "quote": "'\"",
                "date": "2001-01-01", "unicode": "\u{7f}\u{85}\u{2028}é", "dash": "- a", "tilde": "~", "trail": "a ",
            },
            "numbers": [0, -1, 1.5, 9_007_199_254_740_993_i64],
            "nested": [[{ "a": null }], { "b": [true, false] }],
        });
        let yaml = write(document.to_string().as_bytes()).unwrap();
        assert_eq!(read_value(&yaml), document, "{yaml}");
    }

    /// Checks K21 and V14 (CVE-2019-11253).
    #[test]
    fn a_document_that_expands_beyond_the_limits_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..12 {
            let before = format!("*a{}", n - 1);
            let before = vec![before; 10].join(", ");
            bomb += &format!("a{n}: &a{n} [{before}]\n");
        }
        assert_eq!(reason(bomb.as_bytes()), Reason::BadRequest);
        let deep = "[".repeat(100_000);
        assert_eq!(reason(deep.as_bytes()), Reason::BadRequest);
        for wrong in ["a: b: c", "\u{0}", "{"] {
            assert_eq!(reason(wrong.as_bytes()), Reason::BadRequest, "{wrong}");
        }
        assert!(read(b"\xff\xfe").is_err());
    }
}
