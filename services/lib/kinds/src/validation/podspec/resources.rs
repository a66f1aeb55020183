//! Validation of resource requests and limits.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::quantity::Amount;
use setpoint_model::resource_name::{HUGE_PAGES, is_extended, is_native};
use setpoint_model::{Resources, names};
use setpoint_proto::core::{Container, PodSpec, ResourceClaim, ResourceRequirements};
use setpoint_proto::meta::Quantity;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The resources of quotas that count objects.
const OBJECT_COUNTS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// The resources of quotas that are amounts.
const OF_QUOTAS: [&str; 8] = [
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const OF_PODS: &[&str] = &["cpu", "hugepages-", "memory"];
const RESIZABLE: &[&str] = &["cpu", "memory"];
const RESIZE_POLICIES: &[&str] = &["NotRequired", "RestartContainer"];
/// The prefix of the names of huge pages in quotas.
const REQUESTED_HUGE_PAGES: &str = "requests.hugepages-";

type Amounts = BTreeMap<String, Quantity>;

/// Converts quantities to their canonical form. One without a text was null, which is zero.
pub fn canonicalise(amounts: &mut Amounts) {
    for quantity in amounts.values_mut() {
        if quantity.string.is_empty() {
            quantity.string.push('0');
        }
        if let Ok(amount) = Amount::parse(&quantity.string) {
            quantity.string = amount.canonical();
        }
    }
}

/// Validates the resources of a container.
pub fn validate(resources: &ResourceRequirements, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_with(resources, validate_name, path, errors);
}

/// Validates the resources of a Pod as a whole.
pub fn validate_of_pod(
    resources: &ResourceRequirements,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        errors.forbidden(path, "may not be set for a windows pod");
        return;
    }
    if !resources.claims.is_empty() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.forbidden(&path.field("claims"), detail);
    }
    validate_with(resources, validate_pod_name, path, errors);
    validate_containers_fit(resources, spec, path, errors);
}

/// Validates that the containers fit into the resources of their Pod.
fn validate_containers_fit(
    resources: &ResourceRequirements,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let requested = Resources::of_containers(spec, |container| {
        Resources::of_list(&container.resources.requests)
    });
    let at = path.field("requests");
    for (name, own) in exceeded(&resources.requests, &requested) {
        let detail = "must be greater than or equal to aggregate container requests";
        errors.invalid(&at.key(name), own, detail);
    }
    let limited = Resources::of_containers(spec, |container| {
        Resources::of_list(&container.resources.limits)
    });
    let at = path.field("limits");
    for (name, own) in exceeded(&resources.limits, &limited) {
        if name.starts_with(HUGE_PAGES) {
            let detail = "must be greater than or equal to aggregate container limits";
            errors.invalid(&at.key(name), own, detail);
        }
    }
    validate_limits(&resources.limits, spec, &path.field("containers"), errors);
}

/// Returns the amounts of a Pod that are less than the sum of its containers.
fn exceeded<'a>(of_pod: &'a Amounts, sum: &Resources) -> Vec<(&'a String, &'a Quantity)> {
    let own = Resources::of_list(of_pod);
    let none = Resources::default();
    let lacking = own.lacking(&none, sum);
    lacking
        .filter_map(|name| of_pod.get_key_value(name))
        .collect()
}

fn validate_limits(
    of_pod: &Amounts,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let amount = |quantity: &Quantity| Amount::parse(&quantity.string).ok();
    for (index, container) in spec.containers.iter().enumerate() {
        let path = path.index(index);
        for (name, limit) in &container.resources.limits {
            let Some(own) = of_pod.get(name) else {
                continue;
            };
            if amount(limit) > amount(own) {
                let detail = format!("must be less than or equal to pod limits of {own}");
                errors.invalid(&path.key(name).field("limits"), limit, detail);
            }
        }
    }
}

fn validate_with(
    resources: &ResourceRequirements,
    validate_name: fn(&str, &FieldPath<'_>, &mut FieldErrors),
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (limits, requests) = (path.field("limits"), path.field("requests"));
    for (amounts, path) in [
        (&resources.limits, &limits),
        (&resources.requests, &requests),
    ] {
        for (name, quantity) in amounts {
            let path = path.key(name);
            validate_name(name, &path, errors);
            match Amount::parse(&quantity.string) {
                Err(error) => errors.invalid(&path, quantity, error),
                Ok(amount) => {
                    validate_amount(name, amount, quantity, &path, errors);
                    validate_huge_pages(name, amount, &path, errors);
                }
            }
        }
    }
    validate_requests(resources, &limits, &requests, errors);
    let names = || resources.limits.keys().chain(resources.requests.keys());
    let measured = names().any(|name| ["cpu", "memory"].contains(&name.as_str()));
    if !measured && names().any(|name| name.starts_with(HUGE_PAGES)) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

/// Validates that no request exceeds its limit, and that requests of resources that cannot be overcommitted equal it.
fn validate_requests(
    resources: &ResourceRequirements,
    limits: &FieldPath<'_>,
    requests: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let amount = |quantity: &Quantity| Amount::parse(&quantity.string).ok();
    for (name, request) in &resources.requests {
        let overcommitable = is_native(name) && !name.starts_with(HUGE_PAGES);
        match resources.limits.get(name) {
            None if !overcommitable => {
                errors.required(limits, "Limit must be set for non overcommitable resources");
            }
            Some(limit) if !overcommitable && amount(request) != amount(limit) => {
                let detail = format!("must be equal to {name} limit of {limit}");
                errors.invalid(requests, request, detail);
            }
            Some(limit) if amount(request) > amount(limit) => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.invalid(requests, request, detail);
            }
            _ => {}
        }
    }
}

/// Validates that an amount is not negative, and an integer if the resource is not divisible.
pub fn validate_amount(
    name: &str,
    amount: Amount,
    quantity: &Quantity,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if amount < Amount::ZERO {
        errors.invalid(path, quantity, "must be greater than or equal to 0");
    }
    let whole = amount == Amount::from_value(amount.value());
    if !whole && (OBJECT_COUNTS.contains(&name) || is_extended(name)) {
        errors.invalid(path, quantity, "must be an integer");
    }
}

/// Validates that an amount of huge pages is a multiple of the page size.
fn validate_huge_pages(name: &str, amount: Amount, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else {
        return;
    };
    let size = Amount::parse(size).map_or(0, Amount::value);
    if size <= 0 || amount.value().checked_rem(size) != Some(0) {
        let value = amount.canonical();
        let detail = format!("{value} is not positive integer multiple of {name}");
        errors.invalid(path, value, detail);
    }
}

/// Validates the name of a resource that a container may use.
pub fn validate_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_any_name(name, path, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !name.starts_with(HUGE_PAGES) {
            let detail = "must be a standard resource for containers";
            errors.invalid(path, name, detail);
        }
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.invalid(path, name, detail);
    }
}

fn validate_pod_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let before = errors.count();
    validate_any_name(name, path, errors);
    let known = ["cpu", "memory"].contains(&name) || name.starts_with(HUGE_PAGES);
    if errors.count() == before && !known {
        errors.unsupported(path, name, OF_PODS);
    }
}

/// Validates the name of a resource of any object.
pub fn validate_any_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let wrong = names::validate_qualified_name(name);
    let right = wrong.is_empty();
    errors.all_invalid(path, name, wrong);
    let standard = OF_CONTAINERS.contains(&name)
        || OBJECT_COUNTS.contains(&name)
        || OF_QUOTAS.contains(&name)
        || name.starts_with(HUGE_PAGES)
        || name.starts_with(REQUESTED_HUGE_PAGES);
    if right && !name.contains('/') && !standard {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid(path, name, detail);
    }
}

/// Validates that a container names claims of its Pod, each once.
pub fn validate_claims(
    claims: &[ResourceClaim],
    known: &BTreeSet<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.field("claims");
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let (at, name) = (path.index(index), claim.name.as_str());
        if name.is_empty() {
            errors.required(&at, "");
            continue;
        }
        if !claim.request.is_empty() {
            errors.check(
                &at.field("request"),
                &claim.request,
                names::validate_dns_label,
            );
        }
        let first = seen.range((name, "")..).next();
        let first = first.filter(|(other, _)| *other == name);
        // A claim without a request stands for all of its requests.
        let whole = claim.request.is_empty() || first == Some(&(name, ""));
        let repeated = whole && first.is_some();
        if !seen.insert((name, claim.request.as_str())) || repeated {
            errors.duplicate(&at, name);
        }
        if !known.contains(name) {
            errors.not_found(&at, name);
        }
    }
}

/// Validates the resize policy of a container. Upstream names the list as the field.
pub fn validate_resize(
    container: &Container,
    restart_policy: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut seen = BTreeSet::new();
    for (index, policy) in container.resize_policy.iter().enumerate() {
        let (name, restart) = (
            policy.resource_name.as_str(),
            policy.restart_policy.as_str(),
        );
        if !seen.insert(name) {
            errors.duplicate(&path.index(index), name);
        }
        for (value, known) in [(name, RESIZABLE), (restart, RESIZE_POLICIES)] {
            match value {
                "" => errors.required(path, ""),
                value => errors.one_of_or_empty(path, value, known),
            }
        }
        if restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(path, restart, detail);
        }
    }
}

/// Forbids resize policies that would restart an init container.
pub fn forbid_restarts(container: &Container, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, policy) in container.resize_policy.iter().enumerate() {
        if policy.restart_policy == "RestartContainer" {
            let path = path.index(index);
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            let at = path.field("restartPolicy");
            errors.invalid(&at, &policy.restart_policy, detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(requests: (&str, &str), limits: (&str, &str)) -> String {
        let map = |(name, text): (&str, &str)| [(name.to_owned(), Quantity::new(text))].into();
        let resources = ResourceRequirements {
            requests: map(requests),
            limits: map(limits),
            ..Default::default()
        };
        let mut errors = FieldErrors::default();
        validate(&resources, &FieldPath::root("resources"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_request_may_not_exceed_its_limit() {
        assert_eq!(complaints(("cpu", "100m"), ("cpu", "1")), "[]");
        assert_eq!(
            complaints(("cpu", "2"), ("cpu", "1")),
            r#"resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#
        );
    }

    #[test]
    fn resource_names_are_standard_or_qualified_and_amounts_not_negative() {
        let complaint = complaints(("gpu", "1"), ("memory", "1"));
        assert!(complaint.contains("must be a standard resource type or fully qualified"));
        let complaint = complaints(("cpu", "-1"), ("memory", "1"));
        assert!(complaint.contains("must be greater than or equal to 0"));
    }
}
