//! Secret: `stringData` is moved to `data`, and the type is immutable.

mod key_pair;

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::Secret;
use setpoint_proto::meta::ObjectMeta;

use super::StoredKind;
use super::configmap::{DATA_MAX, validate_immutable, validate_keys};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

const TLS: &str = "kubernetes.io/tls";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

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
        let (path, data) = (FieldPath::root("data"), &self.data);
        validate_keys(data, &path, errors);
        if data.values().map(Bytes::len).sum::<usize>() > DATA_MAX {
            errors.too_long(&path, DATA_MAX);
        }
        match self.r#type.as_str() {
            TLS => require(data, &[CERTIFICATE, KEY], &path, errors),
            "kubernetes.io/ssh-auth" => {
                let key = "ssh-privatekey";
                if data.get(key).is_none_or(Bytes::is_empty) {
                    errors.required(&path.key(key), "");
                }
            }
            "kubernetes.io/basic-auth" => {
                let keys = ["username", "password"];
                if !keys.iter().any(|key| data.contains_key(*key)) {
                    require(data, &keys, &path, errors);
                }
            }
            "kubernetes.io/dockercfg" => require_json(data, ".dockercfg", &path, errors),
            "kubernetes.io/dockerconfigjson" => {
                require_json(data, ".dockerconfigjson", &path, errors);
            }
            "kubernetes.io/service-account-token" => require_account(&self.metadata, errors),
            _ => {}
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("type"), &self.r#type, &old.r#type);
        let changes = [("data", self.data != old.data)];
        validate_immutable(self.immutable, old.immutable, &changes, errors);
    }

    /// Warns of a key that is not that of its certificate, in the words of Go's `crypto/tls`.
    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        if self.r#type != TLS {
            return;
        }
        let text = |key: &str| self.data.get(key).map_or(&[][..], |text| &text[..]);
        if let Err(problem) = key_pair::check(text(CERTIFICATE), text(KEY)) {
            warnings.add(problem);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Data").then(|| self.data.len().into())
    }
}

type Data = BTreeMap<String, Bytes>;

fn require(data: &Data, keys: &[&str], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for key in keys.iter().filter(|key| !data.contains_key(**key)) {
        errors.required(&path.key(key), "");
    }
}

/// Requires a JSON object, or `null` as in Kubernetes.
fn require_json(data: &Data, key: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    type Object = Option<serde_json::Map<String, Value>>;
    require(data, &[key], path, errors);
    let value = data.get(key);
    if let Some(Err(error)) = value.map(|value| serde_json::from_slice::<Object>(value)) {
        errors.invalid(&path.key(key), "<secret contents redacted>", error);
    }
}

fn require_account(meta: &ObjectMeta, errors: &mut FieldErrors) {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    if meta.annotations.get(ACCOUNT).is_none_or(String::is_empty) {
        let path = FieldPath::root("metadata");
        let path = path.field("annotations");
        errors.required(&path.key(ACCOUNT), "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_overwrites_data() {
        let mut secret = Secret::default();
        secret.data.insert("k".into(), "old".into());
        secret.string_data.insert("k".into(), "new".into());
        secret.fill_defaults();
        assert_eq!(secret.data["k"], "new");
        assert!(secret.string_data.is_empty());
        assert_eq!(secret.r#type, "Opaque");
    }

    #[test]
    fn types_require_their_keys_and_are_immutable() {
        let tls = Secret {
            r#type: "kubernetes.io/tls".into(),
            ..Default::default()
        };
        let mut errors = FieldErrors::default();
        tls.validate(&mut errors);
        tls.validate_update(&Secret::default(), &mut errors);
        let messages = errors.to_string();
        assert!(messages.contains("data[tls.crt]: Required value"));
        assert!(messages.contains("field is immutable"));
    }
}
