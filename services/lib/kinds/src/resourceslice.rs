//! ResourceSlice: driver, pool and node are immutable, and the devices are complete.

mod device;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::resource::{CounterSet, Device, ResourceSlice, ResourceSliceSpec};

use super::StoredKind;
use super::device::{validate_pool, validate_set};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{validate_driver, validate_node_selector};
use crate::validation::warnings::Warnings;

const DEVICES_MAX: usize = 128;
/// The largest number of devices with taints, counters or lists of attributes.
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const EXACTLY_ONE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

impl StoredKind for ResourceSlice {
    const RETURNS_DELETED: bool = true;
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        let devices = self.spec.devices.iter_mut();
        for taint in devices.flat_map(|device| &mut device.taints) {
            let now = || Timestamp::now().into();
            taint.time_added.get_or_insert_with(now);
        }
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate(&self.spec, &[], errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, new, old) = (FieldPath::root("spec"), &self.spec, &old.spec);
        validate(new, &old.devices, errors);
        let at = path.field("pool");
        errors.immutable(&at.field("name"), &new.pool.name, &old.pool.name);
        errors.immutable(&path.field("driver"), &new.driver, &old.driver);
        errors.immutable(&path.field("nodeName"), &new.node_name, &old.node_name);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let driver = &self.spec.driver;
        if *driver != driver.to_lowercase() {
            let path = FieldPath::root("spec");
            let text = format!(
                "driver names should be lowercase; {driver:?} contains uppercase characters"
            );
            warnings.about(&path.field("driver"), text);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let node = self.spec.node_name.as_deref();
        Some(match column {
            "Node" => node.unwrap_or_default().into(),
            "Driver" => self.spec.driver.as_str().into(),
            "Pool" => self.spec.pool.name.as_str().into(),
            _ => return None,
        })
    }
}

/// Validates the spec. Taints of `old` devices are not validated again.
fn validate(spec: &ResourceSliceSpec, old: &[Device], errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    validate_driver(&spec.driver, &path.field("driver"), errors);
    let (at, pool) = (path.field("pool"), &spec.pool);
    validate_pool(&pool.name, &at.field("name"), errors);
    if pool.resource_slice_count <= 0 {
        let (at, count) = (at.field("resourceSliceCount"), pool.resource_slice_count);
        errors.invalid(&at, count, "must be greater than zero");
    }
    if pool.generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.invalid(&at.field("generation"), pool.generation, detail);
    }
    validate_nodes(spec, &path, errors);
    if !spec.shared_counters.is_empty() && !spec.devices.is_empty() {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        errors.invalid(&path, "", detail);
    }
    let is_advanced = spec.devices.iter().any(device::is_advanced);
    let limit = if is_advanced {
        ADVANCED_DEVICES_MAX
    } else {
        DEVICES_MAX
    };
    let per_device = spec.per_device_node_selection == Some(true);
    let validate = |one: &Device, at: &FieldPath<'_>, errors: &mut FieldErrors| {
        let old = old.iter().find(|old| old.name == one.name);
        device::validate(one, old, per_device, at, errors);
    };
    let (at, key) = (path.field("devices"), |one: &Device| one.name.clone());
    validate_set(&spec.devices, limit, &at, errors, key, validate);
    let (at, key) = (path.field("sharedCounters"), |one: &CounterSet| {
        one.name.clone()
    });
    let sets = &spec.shared_counters;
    validate_set(sets, COUNTER_SETS_MAX, &at, errors, key, validate_counters);
}

/// Validates that the nodes are given in one of the possible ways.
fn validate_nodes(spec: &ResourceSliceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut given = Vec::new();
    let at = path.field("nodeName");
    match spec.node_name.as_deref() {
        Some("") => {
            let detail = "must be either unset or set to a non-empty string";
            errors.invalid(&at, "", detail);
        }
        Some(node) => {
            given.push("`nodeName`");
            errors.check(&at, node, names::validate_dns_subdomain);
        }
        None => {}
    }
    if let Some(selector) = &spec.node_selector {
        given.push("`nodeSelector`");
        let at = path.field("nodeSelector");
        validate_node_selector(selector, &at, errors);
        if selector.node_selector_terms.len() != 1 {
            let (at, terms) = (at.field("nodeSelectorTerms"), &selector.node_selector_terms);
            errors.invalid(&at, terms, "must have exactly one node selector term");
        }
    }
    for (value, field, name) in [
        (spec.all_nodes, "allNodes", "`allNodes`"),
        (
            spec.per_device_node_selection,
            "perDeviceNodeSelection",
            "`perDeviceNodeSelection`",
        ),
    ] {
        match value {
            Some(true) => given.push(name),
            Some(false) => {
                let detail = "must be either unset or set to true";
                errors.invalid(&path.field(field), false, detail);
            }
            None => {}
        }
    }
    match given.len() {
        0 => errors.required(path, EXACTLY_ONE),
        1 => {}
        _ => {
            let detail = format!("{EXACTLY_ONE}, but multiple fields are set");
            errors.invalid(path, format!("{{{}}}", given.join(", ")), detail);
        }
    }
}

fn validate_counters(set: &CounterSet, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("name");
    errors.check_required(&at, &set.name, names::validate_dns_label);
    device::validate_counters(&set.counters, &path.field("counters"), errors);
}
