//! Validation of the status of a ResourceClaim: its allocation, its consumers, and the status of its devices.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::resource::{
    AllocatedDeviceStatus, AllocationResult, DeviceRequestAllocationResult, NetworkDeviceData,
    ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus,
};

use super::request::RequestNames;
use crate::device::{self, LIST_MAX};
use crate::validation::conditions;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;
use crate::validation::podspec::{validate_driver, validate_node_selector};

const CONSUMERS_MAX: usize = 256;
const CONDITIONS_MAX: usize = 8;
const IPS_MAX: usize = 16;
const INTERFACE_MAX: usize = 256;
const HARDWARE_ADDRESS_MAX: usize = 128;
const SOURCES: &[&str] = &["FromClaim", "FromClass"];

/// Driver, pool, device and share.
type DeviceId<'s> = (&'s str, &'s str, &'s str, Option<&'s str>);

/// Removes the status of devices that are no longer allocated.
pub(super) fn drop_released(new: &mut ResourceClaimStatus, old: &ResourceClaimStatus) {
    let now = allocated(new.allocation.as_ref());
    let before = allocated(old.allocation.as_ref());
    let ids = new.devices.iter().map(id_of_status);
    let keep: Vec<_> = ids
        .map(|id| !before.contains(&id) || now.contains(&id))
        .collect();
    let mut keep = keep.into_iter();
    new.devices.retain(|_| keep.next().unwrap_or_default());
}

/// Validates the status after one that was `old`.
pub(super) fn validate(claim: &ResourceClaim, old: &ResourceClaimStatus, errors: &mut FieldErrors) {
    let (path, status) = (FieldPath::root("status"), &claim.status);
    let requests = RequestNames::of(&claim.spec);
    validate_consumers(claim, old, &path.field("reservedFor"), errors);
    let known = allocated(status.allocation.as_ref());
    let validate = |one: &AllocatedDeviceStatus, at: &FieldPath<'_>, errors: &mut FieldErrors| {
        validate_device(one, &known, at, errors);
    };
    let key = |one: &AllocatedDeviceStatus| {
        let (driver, pool, device, share) = id_of_status(one);
        [driver, pool, device, share.unwrap_or_default()].map(str::to_owned)
    };
    let at = path.field("devices");
    device::validate_set(&status.devices, usize::MAX, &at, errors, key, validate);
    let at = path.field("allocation");
    match (&status.allocation, &old.allocation) {
        (Some(new), Some(old)) => errors.immutable(&at, new, old),
        (Some(new), None) => validate_allocation(new, &requests, &at, errors),
        (None, _) => {}
    }
}

fn allocated(allocation: Option<&AllocationResult>) -> BTreeSet<DeviceId<'_>> {
    let results = allocation.into_iter().flat_map(|one| &one.devices.results);
    let ids = results.map(|one| {
        let share = one.share_id.as_deref();
        (&*one.driver, &*one.pool, &*one.device, share)
    });
    ids.collect()
}

fn id_of_status(one: &AllocatedDeviceStatus) -> DeviceId<'_> {
    let share = one.share_id.as_deref();
    (&*one.driver, &*one.pool, &*one.device, share)
}

fn validate_consumers(
    claim: &ResourceClaim,
    old: &ResourceClaimStatus,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let consumers = &claim.status.reserved_for;
    let key = |one: &ResourceClaimConsumerReference| one.uid.clone();
    let validate =
        |one: &ResourceClaimConsumerReference, at: &FieldPath<'_>, errors: &mut FieldErrors| {
            errors.not_empty(&at.field("resource"), &one.resource);
            errors.not_empty(&at.field("name"), &one.name);
            errors.not_empty(&at.field("uid"), &one.uid);
        };
    device::validate_set(consumers, CONSUMERS_MAX, path, errors, key, validate);
    if consumers.is_empty() {
        return;
    }
    if claim.status.allocation.is_none() {
        let detail = "may not be specified when `allocated` is not set";
        errors.forbidden(path, detail);
    } else if claim.metadata.deletion_timestamp.is_some()
        && consumers.iter().any(|one| !old.reserved_for.contains(one))
    {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.forbidden(path, detail);
    }
}

fn validate_allocation(
    allocation: &AllocationResult,
    requests: &RequestNames<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, devices) = (path.field("devices"), &allocation.devices);
    let results = at.field("results");
    errors.at_most(&results, devices.results.len(), LIST_MAX);
    for (index, result) in devices.results.iter().enumerate().take(LIST_MAX) {
        validate_result(result, requests, &results.index(index), errors);
    }
    let configs = at.field("config");
    // Those of the classes and those of the claim.
    errors.at_most(&configs, devices.config.len(), 2 * LIST_MAX);
    for (index, config) in devices.config.iter().enumerate().take(2 * LIST_MAX) {
        let at = configs.index(index);
        let source = at.field("source");
        match config.source.as_str() {
            "" => errors.required(&source, ""),
            other => errors.one_of(&source, other, SOURCES),
        }
        requests.validate_all(&config.requests, &at.field("requests"), errors);
        device::validate_configuration(&config.device_configuration, &at, errors);
    }
    if let Some(selector) = &allocation.node_selector {
        validate_node_selector(selector, &path.field("nodeSelector"), errors);
    }
}

fn validate_result(
    result: &DeviceRequestAllocationResult,
    requests: &RequestNames<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    requests.validate(&result.request, &path.field("request"), errors);
    validate_driver(&result.driver, &path.field("driver"), errors);
    device::validate_pool(&result.pool, &path.field("pool"), errors);
    errors.check(
        &path.field("device"),
        &result.device,
        names::validate_dns_label,
    );
    let (conditions, failures) = (
        &result.binding_conditions,
        &result.binding_failure_conditions,
    );
    device::validate_binding(conditions, failures, path, errors);
    if let Some(share) = &result.share_id {
        device::validate_share(share, &path.field("shareID"), errors);
    }
}

fn validate_device(
    one: &AllocatedDeviceStatus,
    known: &BTreeSet<DeviceId<'_>>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_driver(&one.driver, &path.field("driver"), errors);
    device::validate_pool(&one.pool, &path.field("pool"), errors);
    errors.check(
        &path.field("device"),
        &one.device,
        names::validate_dns_label,
    );
    if let Some(share) = &one.share_id {
        device::validate_share(share, &path.field("shareID"), errors);
    }
    let id = id_of_status(one);
    if !known.contains(&id) {
        let id = format!("{}/{}/{}", one.driver, one.pool, one.device);
        errors.invalid(path, id, "must be an allocated device in the claim");
    }
    let at = path.field("conditions");
    errors.at_most(&at, one.conditions.len(), CONDITIONS_MAX);
    let judged = one.conditions.iter().take(CONDITIONS_MAX);
    conditions::validate(judged, &at, errors);
    if let Some(data) = one.data.as_ref().filter(|data| !data.raw.is_empty()) {
        device::validate_json(&data.raw, &path.field("data"), errors);
    }
    if let Some(network) = &one.network_data {
        validate_network(network, &path.field("networkData"), errors);
    }
}

fn validate_network(data: &NetworkDeviceData, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if data.interface_name.len() > INTERFACE_MAX {
        errors.too_long(&path.field("interfaceName"), INTERFACE_MAX);
    }
    if data.hardware_address.len() > HARDWARE_ADDRESS_MAX {
        errors.too_long(&path.field("hardwareAddress"), HARDWARE_ADDRESS_MAX);
    }
    let validate = |text: &String, at: &FieldPath<'_>, errors: &mut FieldErrors| {
        let Some((address, length)) = ip::parse_range(text) else {
            let detail =
                "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
            return errors.invalid(at, text, detail);
        };
        let canonical = format!("{address}/{length}");
        if canonical != *text {
            errors.invalid(
                at,
                text,
                format!("must be in canonical form ({canonical:?})"),
            );
        }
    };
    let at = path.field("ips");
    device::validate_set(&data.ips, IPS_MAX, &at, errors, String::clone, validate);
}
