//! ResourceClaim and ResourceClaimTemplate: the spec is immutable, and so is an allocation.

mod request;
mod status;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::resource::{ResourceClaim, ResourceClaimTemplate};

use super::{Paths, StoredKind};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::metadata;
use crate::validation::podspec::validate_template_metadata;

impl StoredKind for ResourceClaim {
    const RETURNS_DELETED: bool = true;
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];

    super::status::status_items!(uncounted);

    fn fill_defaults(&mut self) {
        request::fill_defaults(&mut self.spec);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        metadata::keep_for_status(&mut self.metadata, &old.metadata);
        status::drop_released(&mut self.status, &old.status);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        request::validate(&self.spec, &FieldPath::root("spec"), errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("spec"), &self.spec, &old.spec);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        status::validate(self, &old.status, errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "State").then(|| state(self).join(",").into())
    }
}

impl StoredKind for ResourceClaimTemplate {
    const RETURNS_DELETED: bool = true;
    fn fill_defaults(&mut self) {
        request::fill_defaults(&mut self.spec.spec);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        validate_template_metadata(&spec.metadata, &path.field("metadata"), errors);
        request::validate(&spec.spec, &path.field("spec"), errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("spec"), &self.spec, &old.spec);
    }
}

fn state(claim: &ResourceClaim) -> Vec<&'static str> {
    let is_deleted = claim.metadata.deletion_timestamp.is_some();
    let mut states = Vec::new();
    if is_deleted {
        states.push("deleted");
    }
    if claim.status.allocation.is_some() {
        states.push("allocated");
        if !claim.status.reserved_for.is_empty() {
            states.push("reserved");
        }
    } else if !is_deleted {
        states.push("pending");
    }
    states
}
