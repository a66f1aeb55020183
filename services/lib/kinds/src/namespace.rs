//! Namespace: it is `Active` until it is deleted, and then `Terminating` until its content is deleted.

use setpoint_model::{names, replicas};
use setpoint_proto::core::Namespace;

use super::{StoredKind, Subresource};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::metadata;

/// The label with the name, for selectors.
const NAME: &str = "kubernetes.io/metadata.name";
/// The finalizer of the spec that is removed once the content is deleted.
pub(crate) const CONTENT: &str = "kubernetes";
/// Namespaces that cannot be deleted.
const PROTECTED: [&str; 5] = [
    "default",
    "kube-public",
    "kube-system",
    replicas::NAMESPACE,
    replicas::SYSTEM_NAMESPACE,
];

impl StoredKind for Namespace {
    const RETURNS_DELETED: bool = true;

    fn fill_defaults(&mut self) {
        let name = self.metadata.name.clone();
        if !name.is_empty() {
            self.metadata.labels.insert(NAME.into(), name);
        }
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        self.status.phase = "Active".into();
        if !self
            .spec
            .finalizers
            .iter()
            .any(|finalizer| finalizer == CONTENT)
        {
            self.spec.finalizers.push(CONTENT.into());
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        self.spec = old.spec.clone();
        self.status = old.status.clone();
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    /// The subresource `finalize` changes the finalizers of the spec only.
    fn prepare_part_update(&mut self, old: &Self, _part: Subresource) {
        self.status.clone_from(&old.status);
    }

    fn validate_part_update(&self, _old: &Self, _part: Subresource, errors: &mut FieldErrors) {
        self.validate(errors);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let path = path.field("finalizers");
        for finalizer in &self.spec.finalizers {
            errors.check(&path, finalizer, names::validate_qualified_name);
            metadata::validate_finalizer_domain(finalizer, &path, errors);
        }
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("status");
        let ends = self.metadata.deletion_timestamp.is_some();
        let (only, condition) = match ends {
            false => ("Active", "empty"),
            true => ("Terminating", "not empty"),
        };
        if self.status.phase != only {
            let detail = format!("may only be '{only}' if `deletionTimestamp` is {condition}");
            errors.invalid(&path.field("Phase"), &self.status.phase, detail);
        }
    }

    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_label(name)
    }

    fn check_delete(name: &str) -> Result<(), &'static str> {
        match PROTECTED.contains(&name) {
            true => Err("this namespace may not be deleted"),
            false => Ok(()),
        }
    }

    fn begin_deletion(&mut self, _asked: Option<i64>) -> i64 {
        self.status.phase = "Terminating".into();
        0
    }

    fn holds_deletion(&self) -> bool {
        !self.spec.finalizers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_namespace_is_active_and_has_its_label_and_finalizer() {
        let mut namespace = Namespace::default();
        namespace.metadata.name = "production".into();
        namespace.fill_defaults();
        namespace.prepare_create();
        assert_eq!(namespace.status.phase, "Active");
        assert_eq!(namespace.spec.finalizers, [CONTENT]);
        assert_eq!(namespace.metadata.labels[NAME], "production");
        assert!(!Namespace::check_name("a.b").is_empty());
    }
}
