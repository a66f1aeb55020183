//! CustomResourceDefinition: names and scope are immutable once it is established, and a version in which objects are
//! stored stays in the spec.
//!
//! The gateway accepts its names and establishes it (`background/custom_resource_definitions.rs`). A deletion first
//! deletes the objects of the kind; until then a finalizer holds the definition.

mod approval;
mod column;
mod condition;
mod conversion;
mod establishment;
mod formats;
mod names;
mod removal;
mod schema;
mod selectable_field;
mod subresources;
mod versions;

use jiff::Timestamp;
use setpoint_model::condition as conditions;
use setpoint_model::names as model_names;
use setpoint_proto::apiextensions::CustomResourceDefinition;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

pub use establishment::{is_settled, settle_names};
pub use removal::{Removal, has_failed, needs_removal, remove_finalizer};

use condition::ESTABLISHED;

impl StoredKind for CustomResourceDefinition {
    const COUNTS_GENERATIONS: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        names::fill_defaults(&mut self.spec.names);
        conversion::fill_defaults(&mut self.spec.conversion);
        if self.status.stored_versions.is_empty() {
            add_stored_version(self);
        }
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        add_stored_version(self);
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
        add_stored_version(self);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        validate_spec(self, errors);
        validate_status(self, errors);
        let path = FieldPath::root("status");
        let (stored, declared) = (&self.status.stored_versions, &self.spec.versions);
        versions::validate_stored(stored, declared, &path.field("storedVersions"), errors);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        let (name, spec) = (&self.metadata.name, &self.spec);
        if *name != format!("{}.{}", spec.names.plural, spec.group) {
            let path = FieldPath::root("metadata");
            let detail = r#"must be spec.names.plural+"."+spec.group"#;
            errors.invalid(&path.field("name"), name, detail);
        }
        approval::validate(self, None, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, new, was) = (FieldPath::root("spec"), &self.spec, &old.spec);
        let names = path.field("names");
        if conditions::is_true(&old.status.conditions, ESTABLISHED) {
            errors.immutable(&path.field("scope"), &new.scope, &was.scope);
            errors.immutable(&names.field("kind"), &new.names.kind, &was.names.kind);
            if !conversion::has_invalid_ca_bundle(was) {
                conversion::validate_ca_bundle(new, errors);
            }
        }
        errors.immutable(&path.field("group"), &new.group, &was.group);
        errors.immutable(&names.field("plural"), &new.names.plural, &was.names.plural);
        approval::validate(self, Some(old), errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        formats::warn(self, old, warnings);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        validate_status(self, errors);
    }

    fn begin_deletion(&mut self, _requested: Option<i64>) -> i64 {
        removal::begin(self, Timestamp::now());
        0
    }
}

/// Adds the version in which objects are stored to those in which some may be.
fn add_stored_version(definition: &mut CustomResourceDefinition) {
    let stored = &mut definition.status.stored_versions;
    if let Some(version) = versions::storage_version(&definition.spec.versions)
        && !stored.iter().any(|one| one == version)
    {
        stored.push(version.to_owned());
    }
}

fn validate_spec(definition: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let (path, spec) = (FieldPath::root("spec"), &definition.spec);
    validate_group(&spec.group, &path.field("group"), errors);
    let at = path.field("scope");
    match spec.scope.as_str() {
        "" => errors.required(&at, ""),
        scope => errors.one_of(&at, scope, &["Cluster", "Namespaced"]),
    }
    if spec.preserve_unknown_fields {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&path.field("preserveUnknownFields"), true, detail);
    }
    versions::validate(spec, &path, errors);
    names::validate_requested(&spec.names, &path.field("names"), errors);
    if let Some(conversion) = &spec.conversion {
        conversion::validate(conversion, &path.field("conversion"), errors);
    }
}

fn validate_group(group: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let problems = model_names::validate_dns_subdomain(group);
    if group.is_empty() {
        errors.required(path, "");
    } else if !problems.is_empty() {
        errors.invalid(path, group, problems.join(","));
    } else if !group.contains('.') {
        errors.invalid(path, group, "should be a domain with at least one dot");
    }
}

fn validate_status(definition: &CustomResourceDefinition, errors: &mut FieldErrors) {
    let path = FieldPath::root("status");
    let accepted = &definition.status.accepted_names;
    names::validate(accepted, &path.field("acceptedNames"), errors);
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apiextensions::{
        CustomResourceDefinitionCondition, CustomResourceDefinitionVersion,
    };

    use super::*;

    fn version(name: &str, storage: bool) -> CustomResourceDefinitionVersion {
        CustomResourceDefinitionVersion {
            name: name.into(),
            storage,
            ..Default::default()
        }
    }

    #[test]
    fn the_versions_in_which_objects_are_stored_are_recorded() {
        let mut old = CustomResourceDefinition::default();
        old.spec.versions = vec![version("v1", true), version("v2", false)];
        old.status.conditions = vec![CustomResourceDefinitionCondition::default()];
        old.prepare_create();
        assert_eq!(old.status.stored_versions, ["v1"]);
        assert!(old.status.conditions.is_empty());
        let mut new = old.clone();
        new.spec.versions = vec![version("v1", false), version("v2", true)];
        new.status = Default::default();
        new.prepare_update(&old);
        assert_eq!(new.status.stored_versions, ["v1", "v2"]);
        assert!(new.intent_changed(&old));
        new.prepare_update(&new.clone());
        assert_eq!(new.status.stored_versions, ["v1", "v2"]);
    }
}
