//! Validation of the devices of a ResourceSlice.

use std::collections::BTreeMap;

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::meta::Quantity;
use setpoint_proto::resource::{
    Counter, Device, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption, DeviceTaint,
};

use crate::device::{EFFECTS, validate_binding, validate_qualified_name, validate_set};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::validate_node_selector;

/// The largest number of attributes and capacities of a device.
const PROPERTIES_MAX: usize = 32;
/// The largest number of values of attributes of a device.
const VALUES_MAX: usize = 48;
const VALUE_LENGTH_MAX: usize = 64;
const TAINTS_MAX: usize = 16;
const COUNTERS_MAX: usize = 32;
const CONSUMPTIONS_MAX: usize = 2;
const EXACTLY_ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// Returns whether the device has properties of which a slice can have fewer.
pub(super) fn is_advanced(device: &Device) -> bool {
    let has_list = |attribute: &DeviceAttribute| list_length(attribute) > 0;
    !device.taints.is_empty()
        || !device.consumes_counters.is_empty()
        || device.attributes.values().any(has_list)
}

/// Validates a device. Taints that `old` has are not validated again.
pub(super) fn validate(
    device: &Device,
    old: Option<&Device>,
    per_device_nodes: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.check(&path.field("name"), &device.name, names::validate_dns_label);
    let properties = device.attributes.len() + device.capacity.len();
    if properties > PROPERTIES_MAX {
        let detail = format!(
            "the total number of attributes and capacities must not exceed {PROPERTIES_MAX}"
        );
        errors.invalid(path, properties, detail);
    }
    let values = device.attributes.values();
    let values: usize = values.map(|one| list_length(one).max(1)).sum();
    if values > VALUES_MAX {
        let detail = format!("the total number of attribute values must not exceed {VALUES_MAX}");
        errors.invalid(path, values, detail);
    }
    let at = path.field("attributes");
    for (name, attribute) in &device.attributes {
        validate_qualified_name(name, &at, errors);
        validate_attribute(attribute, &at.key(name), errors);
    }
    let (at, is_shared) = (
        path.field("capacity"),
        device.allow_multiple_allocations == Some(true),
    );
    for (name, capacity) in &device.capacity {
        validate_qualified_name(name, &at, errors);
        validate_capacity(capacity, is_shared, &at.key(name), errors);
    }
    if old.is_none_or(|old| old.taints != device.taints) {
        validate_taints(&device.taints, &path.field("taints"), errors);
    }
    let key = |one: &DeviceCounterConsumption| one.counter_set.clone();
    let (at, all) = (path.field("consumesCounters"), &device.consumes_counters);
    validate_set(
        all,
        CONSUMPTIONS_MAX,
        &at,
        errors,
        key,
        |one, at, errors| {
            let name = at.field("counterSet");
            errors.check_required(&name, &one.counter_set, names::validate_dns_label);
            validate_counters(&one.counters, &at.field("counters"), errors);
        },
    );
    validate_nodes(device, per_device_nodes, path, errors);
    let (conditions, failures) = (
        &device.binding_conditions,
        &device.binding_failure_conditions,
    );
    validate_binding(conditions, failures, path, errors);
}

/// Validates counters by name.
pub(super) fn validate_counters(
    counters: &BTreeMap<String, Counter>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if counters.is_empty() {
        return errors.required(path, "");
    }
    errors.at_most(path, counters.len(), COUNTERS_MAX);
    for (name, counter) in counters.iter().take(COUNTERS_MAX) {
        errors.check(path, name, names::validate_dns_label);
        amount(&counter.value, &path.key(name), errors);
    }
}

fn list_length(attribute: &DeviceAttribute) -> usize {
    attribute.ints.len()
        + attribute.bools.len()
        + attribute.strings.len()
        + attribute.versions.len()
}

fn validate_attribute(attribute: &DeviceAttribute, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let set = [
        attribute.int.is_some(),
        attribute.bool.is_some(),
        attribute.string.is_some(),
        attribute.version.is_some(),
        !attribute.ints.is_empty(),
        !attribute.bools.is_empty(),
        !attribute.strings.is_empty(),
        !attribute.versions.is_empty(),
    ];
    let set = set.into_iter().filter(|set| *set).count();
    let at = path.field("strings");
    for (index, text) in attribute.strings.iter().enumerate() {
        validate_text(text, &at.index(index), errors);
    }
    if let Some(text) = &attribute.string {
        validate_text(text, &path.field("string"), errors);
    }
    let at = path.field("versions");
    for (index, version) in attribute.versions.iter().enumerate() {
        validate_version(version, &at.index(index), errors);
    }
    if let Some(version) = &attribute.version {
        validate_version(version, &path.field("version"), errors);
    }
    if set != 1 {
        errors.invalid(path, attribute, "exactly one value must be specified");
    }
}

fn validate_text(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if text.len() > VALUE_LENGTH_MAX {
        errors.too_long(path, VALUE_LENGTH_MAX);
    }
}

fn validate_version(version: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !is_semantic_version(version) {
        let detail = "must be a string compatible with semver.org spec 2.0.0";
        errors.invalid(path, version, detail);
    }
    validate_text(version, path, errors);
}

/// Returns whether the text is `1.2.3`, with an optional `-prerelease` and `+build`.
fn is_semantic_version(text: &str) -> bool {
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (core, release) = match text.split_once('-') {
        Some((core, release)) => (core, Some(release)),
        None => (text, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
    let is_word = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(plain)
    };
    let in_release = |part: &str| is_number(part) || (is_word(part) && !is_digits(part));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && release.is_none_or(|release| release.split('.').all(in_release))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn validate_capacity(
    capacity: &DeviceCapacity,
    is_shared: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let whole = amount(&capacity.value, &path.field("value"), errors);
    let Some(policy) = &capacity.request_policy else {
        return;
    };
    let path = path.field("requestPolicy");
    if !is_shared {
        return errors.forbidden(&path, "allowMultipleAllocations must be true");
    }
    let default = &policy.default;
    match (policy.valid_values.as_slice(), &policy.valid_range) {
        ([_, ..], Some(_)) => {
            let detail = r#"exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time"#;
            errors.forbidden(&path, detail);
        }
        ([_, ..], None) if default.is_none() => {
            errors.required(
                &path.field("default"),
                "required when validValues is defined",
            );
        }
        ([], Some(_)) if default.is_none() => {
            errors.required(
                &path.field("default"),
                "required when validRange is defined",
            );
        }
        ([], Some(range)) if range.min.is_none() => {
            let at = path.field("validRange");
            errors.required(&at.field("min"), "required when validRange is defined");
        }
        (values, _) => {
            let at = path.field("validValues");
            for (index, value) in values.iter().enumerate() {
                let at = at.index(index);
                if amount(value, &at, errors) > whole {
                    let detail =
                        format!("option is larger than capacity value: {}", capacity.value);
                    errors.invalid(&at, value, detail);
                }
            }
        }
    }
}

fn amount(quantity: &Quantity, path: &FieldPath<'_>, errors: &mut FieldErrors) -> Option<Amount> {
    let parsed = Amount::parse(&quantity.string);
    if let Err(error) = &parsed {
        errors.invalid(path, quantity, error);
    }
    parsed.ok()
}

fn validate_taints(taints: &[DeviceTaint], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.at_most(path, taints.len(), TAINTS_MAX);
    for (index, taint) in taints.iter().enumerate().take(TAINTS_MAX) {
        let path = path.index(index);
        errors.check(&path.field("key"), &taint.key, names::validate_label_key);
        errors.check(
            &path.field("value"),
            &taint.value,
            names::validate_label_value,
        );
        let at = path.field("effect");
        match taint.effect.as_str() {
            "" => errors.required(&at, ""),
            effect => errors.one_of(&at, effect, EFFECTS),
        }
    }
}

fn validate_nodes(
    device: &Device,
    per_device: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let given = [
        (device.node_name.is_some(), "`nodeName`"),
        (device.node_selector.is_some(), "`nodeSelector`"),
        (device.all_nodes.is_some(), "`allNodes`"),
    ];
    let given: Vec<_> = given
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| *name)
        .collect();
    if !per_device {
        if !given.is_empty() {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.invalid(path, None::<()>, detail);
        }
        return;
    }
    let at = path.field("nodeName");
    match device.node_name.as_deref() {
        Some("") => errors.invalid(&at, "", "must not be empty"),
        Some(node) => errors.check(&at, node, names::validate_dns_subdomain),
        None => {}
    }
    if let Some(selector) = &device.node_selector {
        validate_node_selector(selector, &path.field("nodeSelector"), errors);
    }
    if device.all_nodes == Some(false) {
        let detail = "must be either unset or set to true";
        errors.invalid(&path.field("allNodes"), false, detail);
    }
    match given.len() {
        0 => errors.required(path, EXACTLY_ONE),
        1 => {}
        _ => errors.invalid(path, format!("{{{}}}", given.join(", ")), EXACTLY_ONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for right in ["1.2.3", "0.0.0", "1.2.3-rc.1", "1.2.3-0a+build.01"] {
            assert!(is_semantic_version(right), "{right}");
        }
        for wrong in [
            "", "1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "v1.2.3", "1.2.3.4",
        ] {
            assert!(!is_semantic_version(wrong), "{wrong}");
        }
    }
}
