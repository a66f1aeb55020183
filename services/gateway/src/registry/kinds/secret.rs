//! The rules of a Secret: text becomes data, and its type is for life.

use setpoint_proto::core::Secret;

use super::configmap::{DATA_MAX, validate_keys};
use crate::registry::path::Path;
use crate::registry::problems::Problems;
use crate::registry::strategy::Rules;

impl Rules for Secret {
    fn fill_defaults(&mut self) {
        let text = std::mem::take(&mut self.string_data);
        self.data
            .extend(text.into_iter().map(|(key, text)| (key, text.into())));
        if self.r#type.is_empty() {
            self.r#type = "Opaque".into();
        }
    }

    fn validate(&self, problems: &mut Problems) {
        let path = Path::root("data");
        validate_keys(&self.data, &path, problems);
        if self.data.values().map(bytes::Bytes::len).sum::<usize>() > DATA_MAX {
            problems.too_long(&path, DATA_MAX);
        }
        let needed: &[&str] = match self.r#type.as_str() {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            _ => &[],
        };
        for key in needed.iter().filter(|key| !self.data.contains_key(**key)) {
            problems.required(&path.key(key), "");
        }
    }

    fn validate_update(&self, old: &Self, problems: &mut Problems) {
        problems.immutable(&Path::root("type"), &self.r#type, &old.r#type);
        if old.immutable != Some(true) {
            return;
        }
        let frozen = "field is immutable when `immutable` is set";
        if self.immutable != old.immutable {
            problems.forbidden(&Path::root("immutable"), frozen);
        }
        if self.data != old.data {
            problems.forbidden(&Path::root("data"), frozen);
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
        let mut problems = Problems::default();
        tls.validate(&mut problems);
        tls.validate_update(&Secret::default(), &mut problems);
        let complaints = problems.to_string();
        assert!(complaints.contains("data[tls.crt]: Required value"));
        assert!(complaints.contains("field is immutable"));
    }
}
