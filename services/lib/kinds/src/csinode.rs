//! CSINode: drivers with different names, of which only the number of allocatable volumes changes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::storage::{CsiNode, CsiNodeDriver};

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::validate_driver;

/// The longest identifier of a node.
const NODE_ID_MAX: usize = 256;

impl StoredKind for CsiNode {
    const RETURNS_DELETED: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let path = path.field("drivers");
        let mut seen = BTreeSet::new();
        for (index, driver) in self.spec.drivers.iter().enumerate() {
            let path = path.index(index);
            validate_entry(driver, &path, errors);
            if !seen.insert(driver.name.as_str()) {
                errors.duplicate(&path.field("name"), &driver.name);
            }
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let without_count = |driver: &CsiNodeDriver| CsiNodeDriver {
            allocatable: None,
            ..driver.clone()
        };
        for new in &self.spec.drivers {
            let old = old.spec.drivers.iter().find(|old| old.name == new.name);
            if let Some(old) = old {
                let (new, old) = (without_count(new), without_count(old));
                errors.immutable(&path.field("drivers"), &new, &old);
            }
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Drivers").then(|| self.spec.drivers.len().into())
    }
}

fn validate_entry(driver: &CsiNodeDriver, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_driver(&driver.name, &path.field("name"), errors);
    let at = path.field("nodeID");
    errors.not_empty(&at, &driver.node_id);
    if driver.node_id.len() > NODE_ID_MAX {
        let detail = format!("must be {NODE_ID_MAX} characters or less");
        errors.invalid(&at, &driver.node_id, detail);
    }
    let allocatable = driver.allocatable.as_ref();
    if let Some(count) = allocatable.and_then(|allocatable| allocatable.count) {
        let at = path.field("allocatable");
        errors.non_negative(&at.field("count"), count);
    }
    let mut seen = BTreeSet::new();
    // Upstream names the driver, not the key, as the field.
    for key in &driver.topology_keys {
        errors.not_empty(path, key);
        if !seen.insert(key) {
            errors.duplicate(path, key);
        }
        errors.check(path, key, names::validate_qualified_name);
    }
}
