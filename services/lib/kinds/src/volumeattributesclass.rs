//! VolumeAttributesClass: immutable.

use setpoint_proto::storage::VolumeAttributesClass;

use super::StoredKind;
use super::storageclass::{validate_driver_name, validate_parameters};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

impl StoredKind for VolumeAttributesClass {
    const RETURNS_DELETED: bool = true;
    fn validate(&self, errors: &mut FieldErrors) {
        validate_driver_name(&self.driver_name, &FieldPath::root("driverName"), errors);
        let path = FieldPath::root("parameters");
        validate_parameters(&self.parameters, &path, errors);
        if self.parameters.is_empty() {
            errors.required(&path, "must contain at least one key/value pair");
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        if self.driver_name != old.driver_name {
            let detail = "updates to driverName are forbidden.";
            errors.forbidden(&FieldPath::root("driverName"), detail);
        }
        if self.parameters != old.parameters {
            let detail = "updates to parameters are forbidden.";
            errors.forbidden(&FieldPath::root("parameters"), detail);
        }
    }
}
