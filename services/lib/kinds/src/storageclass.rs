//! StorageClass: only its mount options, expansion and topologies change; one of them is the default of claims.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_model::volume::{LOCAL_PATH, WAIT_FOR_FIRST_CONSUMER};
use setpoint_proto::core::{TopologySelectorLabelRequirement, TopologySelectorTerm};
use setpoint_proto::storage::StorageClass;

use super::{StoredKind, default_class};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, node_label_message};

/// The annotations that mark the default class.
pub const DEFAULT: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const RECLAIM_POLICIES: &[&str] = &["Delete", "Retain"];
const BINDING_MODES: &[&str] = &["Immediate", WAIT_FOR_FIRST_CONSUMER];
/// The largest number of parameters.
const PARAMETERS_MAX: usize = 512;
/// The largest total size of the keys and values of parameters, in bytes.
const PARAMETERS_SIZE: usize = 256 << 10;

/// Returns the class of volumes that are folders of nodes, the default of claims.
pub fn local_path() -> StorageClass {
    let mut class = StorageClass::default();
    class.metadata.name = "standard".into();
    let default = (DEFAULT[0].to_owned(), "true".to_owned());
    class.metadata.annotations.extend([default]);
    class.provisioner = LOCAL_PATH.into();
    class.reclaim_policy = Some("Delete".into());
    class.volume_binding_mode = Some(WAIT_FOR_FIRST_CONSUMER.into());
    class
}

impl StoredKind for StorageClass {
    const RETURNS_DELETED: bool = true;
    fn fill_defaults(&mut self) {
        let policy = &mut self.reclaim_policy;
        policy.get_or_insert_with(|| "Delete".into());
        let mode = &mut self.volume_binding_mode;
        mode.get_or_insert_with(|| "Immediate".into());
    }

    fn validate(&self, errors: &mut FieldErrors) {
        validate_driver_name(&self.provisioner, &FieldPath::root("provisioner"), errors);
        let path = FieldPath::root("parameters");
        validate_parameters(&self.parameters, &path, errors);
        let policy = self.reclaim_policy.as_deref().unwrap_or_default();
        let path = FieldPath::root("reclaimPolicy");
        errors.one_of_or_empty(&path, policy, RECLAIM_POLICIES);
        let path = FieldPath::root("volumeBindingMode");
        errors.one_of(&path, self.volume_binding_mode.as_deref(), BINDING_MODES);
        validate_topologies(&self.allowed_topologies, errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let path = FieldPath::root("allowedTopologies");
        for (index, term) in self.allowed_topologies.iter().enumerate() {
            let path = path.index(index);
            let at = path.field("matchLabelExpressions");
            for (index, requirement) in term.match_label_expressions.iter().enumerate() {
                if let Some(message) = node_label_message(&requirement.key) {
                    warnings.about(&at.index(index).field("key"), message);
                }
            }
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("parameters");
        errors.immutable(&path, &self.parameters, &old.parameters);
        let path = FieldPath::root("provisioner");
        errors.immutable(&path, &self.provisioner, &old.provisioner);
        let path = FieldPath::root("reclaimPolicy");
        errors.immutable(&path, &self.reclaim_policy, &old.reclaim_policy);
        let (new, old) = (&self.volume_binding_mode, &old.volume_binding_mode);
        errors.immutable(&FieldPath::root("volumeBindingMode"), new, old);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let text = |text: &Option<String>, default: &str| text.as_deref().unwrap_or(default).into();
        Some(match column {
            "Name" => default_class::name_cell(&self.metadata, DEFAULT).into(),
            "ReclaimPolicy" => text(&self.reclaim_policy, "Delete"),
            "VolumeBindingMode" => text(&self.volume_binding_mode, "Immediate"),
            "AllowVolumeExpansion" => self.allow_volume_expansion.unwrap_or_default().into(),
            _ => return None,
        })
    }
}

/// Validates the name of a provisioner or driver, which may have upper-case letters.
pub(super) fn validate_driver_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.check_required(path, &name.to_lowercase(), names::validate_qualified_name);
}

/// Validates the parameters of a class.
pub(super) fn validate_parameters(
    parameters: &BTreeMap<String, String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if parameters.len() > PARAMETERS_MAX {
        return errors.too_long(path, PARAMETERS_MAX);
    }
    if parameters.contains_key("") {
        errors.invalid(path, "", "field can not be empty.");
    }
    let sizes = parameters
        .iter()
        .map(|(key, value)| key.len() + value.len());
    if sizes.sum::<usize>() > PARAMETERS_SIZE {
        errors.too_long(path, PARAMETERS_SIZE);
    }
}

fn validate_topologies(terms: &[TopologySelectorTerm], errors: &mut FieldErrors) {
    let path = FieldPath::root("allowedTopologies");
    let mut seen: BTreeSet<BTreeMap<&str, BTreeSet<&str>>> = BTreeSet::new();
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let at = path.field("matchLabelExpressions");
        let mut keys = BTreeMap::new();
        for (index, requirement) in term.match_label_expressions.iter().enumerate() {
            let at = at.index(index);
            let values = validate_requirement(requirement, &at, errors);
            if keys.insert(requirement.key.as_str(), values).is_some() {
                errors.duplicate(&at.field("key"), &requirement.key);
            }
        }
        // Upstream takes a term without expressions for a repetition, even if it is the only one.
        if keys.is_empty() || !seen.insert(keys) {
            errors.duplicate(&path.field("matchLabelExpressions"), "");
        }
    }
}

fn validate_requirement<'r>(
    requirement: &'r TopologySelectorLabelRequirement,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> BTreeSet<&'r str> {
    let mut seen = BTreeSet::new();
    let at = path.field("values");
    if requirement.values.is_empty() {
        errors.required(&at, "");
    }
    for (index, value) in requirement.values.iter().enumerate() {
        if !seen.insert(value.as_str()) {
            errors.duplicate(&at.index(index), value);
        }
    }
    let key = &requirement.key;
    errors.check(&path.field("key"), key, names::validate_label_key);
    seen
}
