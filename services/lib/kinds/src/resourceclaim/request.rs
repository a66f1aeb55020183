//! Defaults and validation of the spec of a ResourceClaim, which may be in a template.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_proto::resource::{
    DeviceConstraint, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaimSpec,
};

use crate::device::{self, LIST_MAX};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::set_default;

/// The largest number of alternatives of a request.
const ALTERNATIVES_MAX: usize = 8;
const EXACT_COUNT: &str = "ExactCount";
const MODES: &[&str] = &["All", EXACT_COUNT];
const REFERENCE: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The names of requests, each with those of its alternatives.
pub(super) struct RequestNames<'s>(BTreeMap<&'s str, BTreeSet<&'s str>>);

impl<'s> RequestNames<'s> {
    pub(super) fn of(spec: &'s ResourceClaimSpec) -> Self {
        let requests = spec.devices.requests.iter();
        let named = requests.map(|request| {
            let alternatives = request.first_available.iter();
            let alternatives = alternatives.map(|one| one.name.as_str()).collect();
            (request.name.as_str(), alternatives)
        });
        Self(named.collect())
    }

    /// Validates a reference to a request or to one of its alternatives.
    pub(super) fn validate(&self, name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        let parts: Vec<_> = name.split('/').collect();
        if parts.len() > 2 {
            return errors.invalid(path, name, REFERENCE);
        }
        for part in &parts {
            errors.check(path, part, names::validate_dns_label);
        }
        let found = self.0.get(parts[0]);
        let found = found.is_some_and(|known| parts.get(1).is_none_or(|part| known.contains(part)));
        if !found {
            errors.invalid(path, name, REFERENCE);
        }
    }

    /// Validates a list of references.
    pub(super) fn validate_all(
        &self,
        list: &[String],
        path: &FieldPath<'_>,
        errors: &mut FieldErrors,
    ) {
        let validate = |name: &String, at: &FieldPath<'_>, errors: &mut FieldErrors| {
            self.validate(name, at, errors)
        };
        device::validate_set(list, LIST_MAX, path, errors, String::clone, validate);
    }
}

/// Sets the defaults of a spec: one device per request.
pub(super) fn fill_defaults(spec: &mut ResourceClaimSpec) {
    let default = |mode: &mut String, count: &mut i64| {
        set_default(mode, EXACT_COUNT);
        if mode == EXACT_COUNT && *count == 0 {
            *count = 1;
        }
    };
    for request in &mut spec.devices.requests {
        if let Some(exactly) = &mut request.exactly {
            default(&mut exactly.allocation_mode, &mut exactly.count);
        }
        for one in &mut request.first_available {
            default(&mut one.allocation_mode, &mut one.count);
        }
    }
}

/// Validates a spec.
pub(super) fn validate(spec: &ResourceClaimSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (path, devices) = (path.field("devices"), &spec.devices);
    let requests = RequestNames::of(spec);
    let (at, key) = (path.field("requests"), |one: &DeviceRequest| {
        one.name.clone()
    });
    device::validate_set(
        &devices.requests,
        LIST_MAX,
        &at,
        errors,
        key,
        validate_request,
    );
    let at = path.field("constraints");
    errors.at_most(&at, devices.constraints.len(), LIST_MAX);
    for (index, constraint) in devices.constraints.iter().enumerate().take(LIST_MAX) {
        validate_constraint(constraint, &requests, &at.index(index), errors);
    }
    let at = path.field("config");
    errors.at_most(&at, devices.config.len(), LIST_MAX);
    for (index, config) in devices.config.iter().enumerate().take(LIST_MAX) {
        let at = at.index(index);
        requests.validate_all(&config.requests, &at.field("requests"), errors);
        device::validate_configuration(&config.device_configuration, &at, errors);
    }
}

fn validate_request(request: &DeviceRequest, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.check(
        &path.field("name"),
        &request.name,
        names::validate_dns_label,
    );
    let exactly_one = "exactly one of `exactly` or `firstAvailable` is required";
    match (&request.exactly, request.first_available.as_slice()) {
        (None, []) => errors.required(path, exactly_one),
        (Some(_), [_, ..]) => {
            let detail = format!("{exactly_one}, but multiple fields are set");
            errors.invalid(path, None::<()>, detail);
        }
        (Some(exactly), []) => validate_exact(exactly, &path.field("exactly"), errors),
        (None, alternatives) => {
            let key = |one: &DeviceSubRequest| one.name.clone();
            let path = path.field("firstAvailable");
            device::validate_set(
                alternatives,
                ALTERNATIVES_MAX,
                &path,
                errors,
                key,
                validate_alternative,
            );
        }
    }
}

fn validate_exact(request: &ExactDeviceRequest, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_class(&request.device_class_name, path, errors);
    device::validate_selectors(&request.selectors, &path.field("selectors"), errors);
    validate_mode(&request.allocation_mode, request.count, path, errors);
    device::validate_tolerations(&request.tolerations, &path.field("tolerations"), errors);
}

fn validate_alternative(
    request: &DeviceSubRequest,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.check(
        &path.field("name"),
        &request.name,
        names::validate_dns_label,
    );
    validate_class(&request.device_class_name, path, errors);
    device::validate_selectors(&request.selectors, &path.field("selectors"), errors);
    validate_mode(&request.allocation_mode, request.count, path, errors);
    device::validate_tolerations(&request.tolerations, &path.field("tolerations"), errors);
}

fn validate_class(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("deviceClassName");
    errors.check_required(&at, name, names::validate_dns_subdomain);
}

fn validate_mode(mode: &str, count: i64, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.one_of(&path.field("allocationMode"), mode, MODES);
    let at = path.field("count");
    match mode {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.invalid(&at, count, detail);
        }
        EXACT_COUNT if count <= 0 => errors.invalid(&at, count, "must be greater than zero"),
        _ => {}
    }
}

fn validate_constraint(
    constraint: &DeviceConstraint,
    requests: &RequestNames<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    requests.validate_all(&constraint.requests, &path.field("requests"), errors);
    match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(name), _) => {
            device::validate_full_name(name, &path.field("matchAttribute"), errors);
        }
        (None, Some(name)) => {
            device::validate_full_name(name, &path.field("distinctAttribute"), errors);
        }
        (None, None) => {
            let detail = r#"exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#;
            errors.required(path, detail);
        }
    }
}
