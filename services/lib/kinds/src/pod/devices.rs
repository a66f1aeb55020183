//! Validation of claims and devices in the status of a Pod.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{
    Container, ContainerStatus, Pod, PodExtendedResourceClaimStatus, PodResourceClaim,
    PodResourceClaimStatus, PodSpec, ResourceHealth,
};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
const MESSAGE_MAX: usize = 1024;

/// Validates claims and the health of devices.
pub(super) fn validate(pod: &Pod, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (status, spec) = (&pod.status, &pod.spec);
    let at = path.field("resourceClaimStatuses");
    validate_claims(
        &status.resource_claim_statuses,
        &spec.resource_claims,
        &at,
        errors,
    );
    if let Some(claim) = &status.extended_resource_claim_status {
        let at = path.field("extendedResourceClaimStatus");
        validate_extended(claim, spec, &at, errors);
    }
    for (statuses, containers, field) in [
        (
            &status.container_statuses,
            &spec.containers,
            "containerStatuses",
        ),
        (
            &status.init_container_statuses,
            &spec.init_containers,
            "initContainerStatuses",
        ),
    ] {
        let path = path.field(field);
        for (index, status) in statuses.iter().enumerate() {
            let container = containers.iter().find(|one| one.name == status.name);
            validate_health(status, container, &path.index(index), errors);
        }
    }
    let path = path.field("ephemeralContainerStatuses");
    let ephemeral = status.ephemeral_container_statuses.iter().enumerate();
    for (index, _) in ephemeral.filter(|(_, one)| !one.allocated_resources_status.is_empty()) {
        let path = path.index(index);
        let at = path.field("allocatedResourcesStatus");
        errors.forbidden(&at, "must not be specified in container status");
    }
}

fn validate_claims(
    statuses: &[PodResourceClaimStatus],
    claims: &[PodResourceClaim],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let known: BTreeSet<_> = claims.iter().map(|claim| &claim.name).collect();
    let mut seen = BTreeSet::new();
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index);
        let at = path.field("name");
        if !known.contains(&status.name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.invalid(&at, &status.name, detail);
        }
        if !seen.insert(&status.name) {
            errors.duplicate(&at, &status.name);
        }
        if let Some(name) = &status.resource_claim_name {
            errors.check(
                &path.field("resourceClaimName"),
                name,
                names::validate_dns_subdomain,
            );
        }
    }
}

fn validate_extended(
    claim: &PodExtendedResourceClaimStatus,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let list = path.field("requestMappings");
    if claim.request_mappings.is_empty() {
        errors.required(&list, "at least one request mapping is required");
    }
    let containers = || spec.init_containers.iter().chain(&spec.containers);
    let mut seen = BTreeSet::new();
    for (index, mapping) in claim.request_mappings.iter().enumerate() {
        let path_of_mapping = list.index(index);
        let container = containers().find(|one| one.name == mapping.container_name);
        match container.map(|container| &container.resources.requests) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or \
                    spec.containers.name";
                let at = path_of_mapping.field("containerName");
                errors.invalid(&at, &mapping.container_name, detail);
            }
            Some(requests) if !requests.contains_key(&mapping.resource_name) => {
                let detail = "must match the extended resource name of an entry in \
                    spec.initContainers.resources.requests or spec.containers.resources.requests";
                let at = path_of_mapping.field("resourceName");
                errors.invalid(&at, &mapping.resource_name, detail);
            }
            Some(_) => {}
        }
        // Kubernetes leaves the list out of this path.
        errors.check(
            &path.field("requestName"),
            &mapping.request_name,
            names::validate_dns_label,
        );
        let parts = [
            (&mapping.container_name, "containerName"),
            (&mapping.resource_name, "resourceName"),
            (&mapping.request_name, "requestName"),
        ];
        if !seen.insert(parts) {
            for (value, field) in parts {
                errors.duplicate(&path_of_mapping.field(field), value);
            }
        }
    }
    let at = path.field("resourceClaimName");
    errors.check_required(
        &at,
        &claim.resource_claim_name,
        names::validate_dns_subdomain,
    );
}

fn validate_health(
    status: &ContainerStatus,
    container: Option<&Container>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.field("allocatedResourcesStatus");
    for (index, resource) in status.allocated_resources_status.iter().enumerate() {
        let path = path.index(index);
        if let Some(container) = container {
            validate_requested(&resource.name, container, &path.field("name"), errors);
        }
        let path = path.field("resources");
        let mut seen = BTreeSet::new();
        for (index, device) in resource.resources.iter().enumerate() {
            let path = path.index(index);
            validate_device(device, &path, errors);
            if !seen.insert(&device.resource_id) {
                errors.duplicate(&path.field("resourceID"), &device.resource_id);
            }
        }
    }
}

/// Validates that a container requested a device, directly or by a claim.
fn validate_requested(
    name: &str,
    container: &Container,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let resources = &container.resources;
    let (requested, detail) = match name.strip_prefix("claim:") {
        Some(name) => {
            let named = resources.claims.iter().any(|claim| match &*claim.request {
                "" => name == claim.name,
                request => name.split_once('/') == Some((&*claim.name, request)),
            });
            let detail = "must match one of the container's resource claims in a format \
                'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            (named, detail)
        }
        None => {
            let detail = "must match one of the container's resource requests";
            (resources.requests.contains_key(name), detail)
        }
    };
    if !requested {
        errors.invalid(path, name, detail);
    }
}

fn validate_device(device: &ResourceHealth, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.one_of(&path.field("health"), device.health.as_str(), HEALTH);
    let at = path.field("message");
    match device.message.as_deref() {
        Some("") => errors.required(&at, "must be non-empty if specified"),
        Some(message) if message.len() > MESSAGE_MAX => errors.too_long(&at, MESSAGE_MAX),
        _ => {}
    }
}
