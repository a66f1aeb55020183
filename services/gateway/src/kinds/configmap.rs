//! ConfigMap: keys are file names, and an immutable one does not change.

use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

use setpoint_model::names;
use setpoint_proto::core::ConfigMap;

use super::StoredKind;
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

/// The largest total size of the values of a ConfigMap or Secret, in bytes.
pub(super) const DATA_MAX: usize = 1 << 20;

impl StoredKind for ConfigMap {
    fn validate(&self, errors: &mut FieldErrors) {
        let (data, binary) = (FieldPath::root("data"), FieldPath::root("binaryData"));
        validate_keys(&self.data, &data, errors);
        validate_keys(&self.binary_data, &binary, errors);
        for key in self.data.keys() {
            if self.binary_data.contains_key(key) {
                let detail = "duplicate of key present in binaryData";
                errors.invalid(&data.key(key), key, detail);
            }
        }
        let text = self.data.values().map(String::len);
        let size: usize = text
            .chain(self.binary_data.values().map(bytes::Bytes::len))
            .sum();
        if size > DATA_MAX {
            // No single field is at fault; Kubernetes writes the path like this.
            errors.too_long(&FieldPath::root("[]"), DATA_MAX);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        if old.immutable != Some(true) {
            return;
        }
        let frozen = "field is immutable when `immutable` is set";
        if self.immutable != Some(true) {
            errors.forbidden(&FieldPath::root("immutable"), frozen);
        }
        if self.data != old.data {
            errors.forbidden(&FieldPath::root("data"), frozen);
        }
        if self.binary_data != old.binary_data {
            errors.forbidden(&FieldPath::root("binaryData"), frozen);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let entries = self.data.len() + self.binary_data.len();
        (column == "Data").then(|| entries.into())
    }
}

/// Finds keys that could not be the name of a file.
pub(super) fn validate_keys<V>(
    map: &BTreeMap<String, V>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for key in map.keys() {
        errors.all_invalid(&path.key(key), key, names::validate_config_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(map: &ConfigMap) -> String {
        let mut errors = FieldErrors::default();
        map.validate(&mut errors);
        errors.to_string()
    }

    #[test]
    fn keys_could_be_file_names() {
        let mut map = ConfigMap::default();
        map.data.insert("KEY.name_1".into(), "v".into());
        assert_eq!(complaints(&map), "[]");
        map.data.insert("a/b".into(), "v".into());
        assert!(
            complaints(&map).starts_with(r#"data[a/b]: Invalid value: "a/b": a valid config key"#)
        );
        let mut map = ConfigMap::default();
        map.data.insert("..".into(), String::new());
        assert!(complaints(&map).contains("must not be '..'"));
    }

    #[test]
    fn a_key_is_text_or_bytes_but_not_both() {
        let mut map = ConfigMap::default();
        map.data.insert("k".into(), "v".into());
        map.binary_data.insert("k".into(), "v".into());
        assert!(complaints(&map).contains("duplicate of key present in binaryData"));
    }

    #[test]
    fn what_is_immutable_stays_as_it_is() {
        let mut old = ConfigMap {
            immutable: Some(true),
            ..Default::default()
        };
        let new = old.clone();
        old.data.insert("k".into(), "v".into());
        let mut errors = FieldErrors::default();
        new.validate_update(&old, &mut errors);
        assert_eq!(
            errors.to_string(),
            "data: Forbidden: field is immutable when `immutable` is set"
        );
    }
}
