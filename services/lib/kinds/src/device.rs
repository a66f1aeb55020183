//! Validation that the kinds of the group `resource.k8s.io` share: names, selectors, configurations and tolerations.
//!
//! CEL expressions are not compiled: only that they are not empty, and their length.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::resource::{DeviceConfiguration, DeviceSelector, DeviceToleration};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::validate_driver;

/// The largest number of requests, constraints, configurations, selectors or results.
pub(super) const LIST_MAX: usize = 32;
/// The longest CEL expression, in bytes.
const EXPRESSION_MAX: usize = 10 << 10;
/// The longest JSON of parameters and data, in bytes.
pub(super) const JSON_MAX: usize = 10 << 10;
const POOL_MAX: usize = 253;
const IDENTIFIER_MAX: usize = 32;
/// The effects of taints of devices.
pub(super) const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];
const OPERATORS: &[&str] = &["Equal", "Exists"];
/// The largest number of conditions for binding.
const BINDING_MAX: usize = 4;

/// Validates each entry of a list, whose keys are unique, unless it is too long.
pub(super) fn validate_set<T, K>(
    list: &[T],
    limit: usize,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
    key: impl Fn(&T) -> K,
    validate: impl Fn(&T, &FieldPath<'_>, &mut FieldErrors),
) where
    K: Ord + serde::Serialize,
{
    errors.at_most(path, list.len(), limit);
    if list.len() > limit {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in list.iter().enumerate() {
        let at = path.index(index);
        validate(entry, &at, errors);
        let key = key(entry);
        if seen.contains(&key) {
            errors.duplicate(&at, key);
        } else {
            seen.insert(key);
        }
    }
}

/// Validates selectors of devices.
pub(super) fn validate_selectors(
    selectors: &[DeviceSelector],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.at_most(path, selectors.len(), LIST_MAX);
    if selectors.len() > LIST_MAX {
        return;
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index);
        let at = path.field("cel");
        let Some(cel) = &selector.cel else {
            errors.required(&at, "");
            continue;
        };
        let at = at.field("expression");
        errors.not_empty(&at, cel.expression.trim());
        if cel.expression.len() > EXPRESSION_MAX {
            errors.too_long(&at, EXPRESSION_MAX);
        }
    }
}

/// Validates a configuration, which is for one driver.
pub(super) fn validate_configuration(
    configuration: &DeviceConfiguration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("opaque");
    let Some(opaque) = &configuration.opaque else {
        return errors.required(&at, "");
    };
    validate_driver(&opaque.driver, &at.field("driver"), errors);
    validate_json(&opaque.parameters.raw, &at.field("parameters"), errors);
}

/// Validates that the text is a JSON object.
pub(super) fn validate_json(raw: &[u8], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if raw.is_empty() {
        return errors.required(path, "");
    }
    if raw.len() > JSON_MAX {
        return errors.too_long(path, JSON_MAX);
    }
    match serde_json::from_slice::<serde_json::Value>(raw) {
        Err(error) => {
            let detail = format!("error parsing data as JSON: {error}");
            errors.invalid(path, "<value omitted>", detail);
        }
        Ok(serde_json::Value::Null) => errors.required(path, ""),
        Ok(serde_json::Value::Object(_)) => {}
        Ok(_) => errors.invalid(path, "<value omitted>", "must be a valid JSON object"),
    }
}

/// Validates tolerations of the taints of devices.
pub(super) fn validate_tolerations(
    tolerations: &[DeviceToleration],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, toleration) in tolerations.iter().enumerate() {
        validate_toleration(toleration, &path.index(index), errors);
    }
}

fn validate_toleration(
    toleration: &DeviceToleration,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if !toleration.key.is_empty() {
        let at = path.field("key");
        errors.check(&at, &toleration.key, names::validate_label_key);
    }
    let (at, value) = (path.field("value"), toleration.value.as_str());
    match toleration.operator.as_str() {
        "" => errors.required(&path.field("operator"), ""),
        "Exists" if !value.is_empty() => {
            errors.invalid(&at, value, "must be empty for operator `Exists`");
        }
        "Equal" => errors.check(&at, value, names::validate_label_value),
        operator => errors.one_of(&path.field("operator"), operator, OPERATORS),
    }
    errors.one_of_or_empty(&path.field("effect"), &toleration.effect, EFFECTS);
}

/// Validates the conditions that a scheduler awaits before it binds a Pod to the node of a device.
pub(super) fn validate_binding(
    conditions: &[String],
    failures: &[String],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, failures_at) = (
        path.field("bindingConditions"),
        path.field("bindingFailureConditions"),
    );
    let check = |name: &String, at: &FieldPath<'_>, errors: &mut FieldErrors| {
        errors.check(at, name, names::validate_label_key);
    };
    validate_set(conditions, BINDING_MAX, &at, errors, String::clone, check);
    validate_set(
        failures,
        BINDING_MAX,
        &failures_at,
        errors,
        String::clone,
        check,
    );
    for (index, condition) in failures.iter().enumerate() {
        if conditions.contains(condition) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.invalid(&failures_at.index(index), condition, detail);
        }
    }
    if conditions.is_empty() && !failures.is_empty() {
        let detail = "bindingConditions are required to use bindingFailureConditions";
        errors.invalid(&at, conditions, detail);
    }
    if failures.is_empty() && !conditions.is_empty() {
        let detail = "bindingFailureConditions are required to use bindingConditions";
        errors.invalid(&failures_at, failures, detail);
    }
}

/// Validates the name of a pool: DNS subdomains that are separated by slashes.
pub(super) fn validate_pool(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name.len() > POOL_MAX {
        errors.too_long(path, POOL_MAX);
    }
    for part in name.split('/') {
        errors.check(path, part, names::validate_dns_subdomain);
    }
}

/// Validates a C identifier that may have a domain, as the names of attributes and capacities are.
pub(super) fn validate_qualified_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some((domain, id)) = name.split_once('/') else {
        return validate_identifier(name, path, errors);
    };
    match domain {
        "" => errors.invalid(path, "", "the domain must not be empty"),
        domain => validate_driver(domain, path, errors),
    }
    match id {
        "" => errors.invalid(path, "", "the name must not be empty"),
        id => validate_identifier(id, path, errors),
    }
}

/// Validates a C identifier with a domain.
pub(super) fn validate_full_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_qualified_name(name, path, errors);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.invalid(path, name, detail);
    }
}

fn validate_identifier(id: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if id.len() > IDENTIFIER_MAX {
        errors.too_long(path, IDENTIFIER_MAX);
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let valid = id.chars().all(plain) && id.starts_with(|first: char| !first.is_ascii_digit());
    if !valid {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
        errors.invalid(path, id, detail);
    }
}

/// Validates the identifier of a share of a device, which is a UUID.
pub(super) fn validate_share(id: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match uuid::Uuid::parse_str(id) {
        Err(error) => errors.invalid(path, id, format!("error validating uid: {error}")),
        Ok(uuid) if uuid.to_string() != id => {
            let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
            errors.invalid(path, id, detail);
        }
        Ok(_) => {}
    }
}
