//! ConfigMap: its keys are file names, and an immutable one cannot be changed.

use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

use setpoint_model::names;
use setpoint_proto::core::ConfigMap;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

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
        let changes = [
            ("data", self.data != old.data),
            ("binaryData", self.binary_data != old.binary_data),
        ];
        validate_immutable(self.immutable, old.immutable, &changes, errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let entries = self.data.len() + self.binary_data.len();
        (column == "Data").then(|| entries.into())
    }
}

/// Validates an update of a ConfigMap or Secret: if the old one is immutable, the flag and the fields may not change.
pub(super) fn validate_immutable(
    new: Option<bool>,
    old: Option<bool>,
    changes: &[(&'static str, bool)],
    errors: &mut FieldErrors,
) {
    if old != Some(true) {
        return;
    }
    let unset = [("immutable", new != Some(true))];
    for (field, _) in unset.iter().chain(changes).filter(|(_, changed)| *changed) {
        let detail = "field is immutable when `immutable` is set";
        errors.forbidden(&FieldPath::root(field), detail);
    }
}

/// Validates that keys can be file names.
pub(super) fn validate_keys<V>(
    map: &BTreeMap<String, V>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for key in map.keys() {
        errors.check(&path.key(key), key, names::validate_config_key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of(map: &ConfigMap) -> String {
        let mut errors = FieldErrors::default();
        map.validate(&mut errors);
        errors.to_string()
    }

    #[test]
    fn keys_must_be_valid_file_names() {
        let mut map = ConfigMap::default();
        map.data.insert("KEY.name_1".into(), "v".into());
        assert_eq!(errors_of(&map), "[]");
        map.data.insert("a/b".into(), "v".into());
        assert!(
            errors_of(&map).starts_with(r#"data[a/b]: Invalid value: "a/b": a valid config key"#)
        );
        let mut map = ConfigMap::default();
        map.data.insert("..".into(), String::new());
        assert!(errors_of(&map).contains("must not be '..'"));
    }

    #[test]
    fn a_key_may_not_be_in_both_fields() {
        let mut map = ConfigMap::default();
        map.data.insert("k".into(), "v".into());
        map.binary_data.insert("k".into(), "v".into());
        assert!(errors_of(&map).contains("duplicate of key present in binaryData"));
    }

    #[test]
    fn an_immutable_config_map_cannot_be_changed() {
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
