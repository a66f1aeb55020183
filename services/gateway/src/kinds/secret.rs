//! Secret: `stringData` is moved to `data`, and the type is immutable.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::Secret;

use super::StoredKind;
use super::configmap::{DATA_MAX, validate_keys};
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

impl StoredKind for Secret {
    fn fill_defaults(&mut self) {
        let text = std::mem::take(&mut self.string_data);
        self.data
            .extend(text.into_iter().map(|(key, text)| (key, text.into())));
        if self.r#type.is_empty() {
            self.r#type = "Opaque".into();
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("data");
        validate_keys(&self.data, &path, errors);
        if self.data.values().map(bytes::Bytes::len).sum::<usize>() > DATA_MAX {
            errors.too_long(&path, DATA_MAX);
        }
        match self.r#type.as_str() {
            "kubernetes.io/tls" => self.require(&["tls.crt", "tls.key"], &path, errors),
            "kubernetes.io/ssh-auth" if self.says_nothing("ssh-privatekey") => {
                errors.required(&path.key("ssh-privatekey"), "");
            }
            "kubernetes.io/basic-auth" => {
                let keys = ["username", "password"];
                if !keys.iter().any(|key| self.data.contains_key(*key)) {
                    self.require(&keys, &path, errors);
                }
            }
            "kubernetes.io/dockercfg" => self.require_json(".dockercfg", &path, errors),
            "kubernetes.io/dockerconfigjson" => {
                self.require_json(".dockerconfigjson", &path, errors);
            }
            "kubernetes.io/service-account-token" => self.require_account(errors),
            _ => {}
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("type"), &self.r#type, &old.r#type);
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
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Data").then(|| self.data.len().into())
    }
}

/// The requirements of the built-in types of Secrets.
trait Typed {
    fn says_nothing(&self, key: &str) -> bool;
    fn require(&self, keys: &[&'static str], path: &FieldPath<'_>, errors: &mut FieldErrors);
    fn require_json(&self, key: &'static str, path: &FieldPath<'_>, errors: &mut FieldErrors);
    fn require_account(&self, errors: &mut FieldErrors);
}

impl Typed for Secret {
    fn says_nothing(&self, key: &str) -> bool {
        self.data.get(key).is_none_or(|value| value.is_empty())
    }

    fn require(&self, keys: &[&'static str], path: &FieldPath<'_>, errors: &mut FieldErrors) {
        for key in keys.iter().filter(|key| !self.data.contains_key(**key)) {
            errors.required(&path.key(key), "");
        }
    }

    fn require_json(&self, key: &'static str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        // `null` is accepted, as in Kubernetes.
        type Object = Option<serde_json::Map<String, serde_json::Value>>;
        self.require(&[key], path, errors);
        let value = self.data.get(key);
        if let Some(Err(error)) = value.map(|value| serde_json::from_slice::<Object>(value)) {
            errors.invalid(&path.key(key), "<secret contents redacted>", error);
        }
    }

    fn require_account(&self, errors: &mut FieldErrors) {
        const ACCOUNT: &str = "kubernetes.io/service-account.name";
        let account = self.metadata.annotations.get(ACCOUNT);
        if account.is_none_or(String::is_empty) {
            let path = FieldPath::root("metadata");
            let path = path.field("annotations");
            errors.required(&path.key(ACCOUNT), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_data_and_wins_over_it() {
        let mut secret = Secret::default();
        secret.data.insert("k".into(), "old".into());
        secret.string_data.insert("k".into(), "new".into());
        secret.fill_defaults();
        assert_eq!(secret.data["k"], "new");
        assert!(secret.string_data.is_empty());
        assert_eq!(secret.r#type, "Opaque");
    }

    #[test]
    fn some_types_need_their_keys_and_no_type_changes() {
        let tls = Secret {
            r#type: "kubernetes.io/tls".into(),
            ..Default::default()
        };
        let mut errors = FieldErrors::default();
        tls.validate(&mut errors);
        tls.validate_update(&Secret::default(), &mut errors);
        let complaints = errors.to_string();
        assert!(complaints.contains("data[tls.crt]: Required value"));
        assert!(complaints.contains("field is immutable"));
    }
}
