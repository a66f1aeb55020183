//! Amounts that containers ask for and are limited to.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::quantity::Amount;
use setpoint_model::{Resources, names};
use setpoint_proto::core::{Container, PodSpec, ResourceClaim, ResourceRequirements};
use setpoint_proto::meta::Quantity;

use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

/// Resources without a domain that are counted.
const COUNTED: [&str; 9] = [
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
/// Resources without a domain that are measured, but not of containers.
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
const RESIZE: &[&str] = &["NotRequired", "RestartContainer"];
const PAGES: &str = "hugepages-";

type Amounts = BTreeMap<String, Quantity>;

/// Writes every amount in the one way in which Kubernetes writes it.
pub fn canonicalise(amounts: &mut Amounts) {
    for quantity in amounts.values_mut() {
        if let Ok(amount) = Amount::parse(&quantity.string) {
            quantity.string = amount.canonical();
        }
    }
}

/// Finds what is wrong with the resources of a container.
pub fn validate(resources: &ResourceRequirements, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_with(resources, validate_name, path, errors);
}

/// Finds what is wrong with the resources of a whole Pod.
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
    validate_with(resources, validate_pods_name, path, errors);
    validate_shares(resources, spec, path, errors);
}

/// Containers request no more together, and have no more alone, than their Pod says.
fn validate_shares(
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
        if name.starts_with(PAGES) {
            let detail = "must be greater than or equal to aggregate container limits";
            errors.invalid(&at.key(name), own, detail);
        }
    }
    validate_limits(&resources.limits, spec, &path.field("containers"), errors);
}

/// The amounts of a Pod that are less than its containers' together.
fn exceeded<'a>(of_pod: &'a Amounts, together: &Resources) -> Vec<(&'a String, &'a Quantity)> {
    let own = Resources::of_list(of_pod);
    let none = Resources::default();
    let lacking = own.lacking(&none, together);
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
                    validate_pages(name, amount, &path, errors);
                }
            }
        }
    }
    validate_requests(resources, &limits, &requests, errors);
    let names = || resources.limits.keys().chain(resources.requests.keys());
    let measured = names().any(|name| ["cpu", "memory"].contains(&name.as_str()));
    if !measured && names().any(|name| name.starts_with(PAGES)) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

/// No request is above its limit; what cannot be shared is requested in full.
fn validate_requests(
    resources: &ResourceRequirements,
    limits: &FieldPath<'_>,
    requests: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let amount = |quantity: &Quantity| Amount::parse(&quantity.string).ok();
    for (name, request) in &resources.requests {
        let shared = is_native(name) && !name.starts_with(PAGES);
        match resources.limits.get(name) {
            None if !shared => {
                errors.required(limits, "Limit must be set for non overcommitable resources");
            }
            Some(limit) if !shared && amount(request) != amount(limit) => {
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

/// No amount is negative, and what is not cut into parts is whole.
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
    if !whole && (COUNTED.contains(&name) || is_extended(name)) {
        errors.invalid(path, quantity, "must be an integer");
    }
}

/// Pages are whole ones.
fn validate_pages(name: &str, amount: Amount, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(size) = name.strip_prefix(PAGES) else {
        return;
    };
    let size = Amount::parse(size).map_or(0, Amount::value);
    if size <= 0 || amount.value().checked_rem(size) != Some(0) {
        let value = amount.canonical();
        let detail = format!("{value} is not positive integer multiple of {name}");
        errors.invalid(path, value, detail);
    }
}

/// Whether Kubernetes itself defines the resource.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the resource is an extended one.
fn is_extended(name: &str) -> bool {
    let in_quotas = format!("requests.{name}");
    !is_native(name)
        && !name.starts_with("requests.")
        && names::validate_qualified_name(&in_quotas).is_empty()
}

fn validate_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_any_name(name, path, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !name.starts_with(PAGES) {
            let detail = "must be a standard resource for containers";
            errors.invalid(path, name, detail);
        }
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.invalid(path, name, detail);
    }
}

fn validate_pods_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let before = errors.count();
    validate_any_name(name, path, errors);
    let known = ["cpu", "memory"].contains(&name) || name.starts_with(PAGES);
    if errors.count() == before && !known {
        errors.unsupported(path, name, OF_PODS);
    }
}

fn validate_any_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let wrong = names::validate_qualified_name(name);
    let right = wrong.is_empty();
    errors.all_invalid(path, name, wrong);
    let standard = OF_CONTAINERS.contains(&name)
        || COUNTED.contains(&name)
        || OF_QUOTAS.contains(&name)
        || name.starts_with(PAGES);
    if right && !name.contains('/') && !standard {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid(path, name, detail);
    }
}

/// A container uses claims that its Pod has, each once.
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
            let wrong = names::validate_dns_label(&claim.request);
            errors.all_invalid(&at.field("request"), &claim.request, wrong);
        }
        let first = seen.range((name, "")..).next();
        let first = first.filter(|(other, _)| *other == name);
        // A claim without a request means all of its requests.
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
        for (value, known) in [(name, RESIZABLE), (restart, RESIZE)] {
            match value {
                "" => errors.required(path, ""),
                value => errors.one_of(path, value, known),
            }
        }
        if restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(path, restart, detail);
        }
    }
}

/// Finds resources whose change would restart a container that others wait for.
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
    fn nobody_may_request_more_than_the_limit() {
        assert_eq!(complaints(("cpu", "100m"), ("cpu", "1")), "[]");
        assert_eq!(
            complaints(("cpu", "2"), ("cpu", "1")),
            r#"resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#
        );
    }

    #[test]
    fn a_resource_has_a_known_or_a_full_name() {
        let complaint = complaints(("gpu", "1"), ("memory", "1"));
        assert!(complaint.contains("must be a standard resource type or fully qualified"));
        let complaint = complaints(("cpu", "-1"), ("memory", "1"));
        assert!(complaint.contains("must be greater than or equal to 0"));
    }
}
