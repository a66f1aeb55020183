//! CSIStorageCapacity: topology and class are immutable.

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::storage::CsiStorageCapacity;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;
use crate::validation::warnings::{Warnings, warn_of_node_selector};

impl StoredKind for CsiStorageCapacity {
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        let amounts = [&mut self.capacity, &mut self.maximum_volume_size];
        for quantity in amounts.into_iter().flatten() {
            if let Ok(amount) = Amount::parse(&quantity.string) {
                quantity.string = amount.canonical();
            }
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("nodeTopology");
        label_selector::validate(self.node_topology.as_ref(), &path, errors);
        let path = FieldPath::root("storageClassName");
        errors.check(
            &path,
            &self.storage_class_name,
            names::validate_dns_subdomain,
        );
        let Some(capacity) = &self.capacity else {
            return;
        };
        let path = FieldPath::root("capacity");
        match Amount::parse(&capacity.string) {
            Err(error) => errors.invalid(&path, capacity, error),
            Ok(amount) if amount < Amount::ZERO => {
                errors.invalid(&path, capacity, "must be greater than or equal to 0");
            }
            Ok(_) => {}
        }
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        if let Some(topology) = &self.node_topology {
            warn_of_node_selector(topology, &FieldPath::root("nodeTopology"), warnings);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("nodeTopology");
        errors.immutable(&path, &self.node_topology, &old.node_topology);
        let (new, old) = (&self.storage_class_name, &old.storage_class_name);
        errors.immutable(&FieldPath::root("storageClassName"), new, old);
    }
}
