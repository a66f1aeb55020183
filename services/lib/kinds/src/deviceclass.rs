//! DeviceClass: selectors and configurations are complete.

use setpoint_model::resource_name::is_extended;
use setpoint_proto::resource::DeviceClass;

use super::{StoredKind, device};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

impl StoredKind for DeviceClass {
    const RETURNS_DELETED: bool = true;
    const COUNTS_GENERATIONS: bool = true;

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        device::validate_selectors(&spec.selectors, &path.field("selectors"), errors);
        let at = path.field("config");
        errors.at_most(&at, spec.config.len(), device::LIST_MAX);
        for (index, config) in spec.config.iter().enumerate().take(device::LIST_MAX) {
            let configuration = &config.device_configuration;
            device::validate_configuration(configuration, &at.index(index), errors);
        }
        if let Some(name) = &spec.extended_resource_name
            && !is_extended(name)
        {
            let at = path.field("extendedResourceName");
            errors.invalid(&at, name, "must be a valid extended resource name");
        }
    }
}
