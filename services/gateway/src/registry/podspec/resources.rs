//! Amounts that containers ask for and are limited to.

use std::collections::BTreeMap;

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::ResourceRequirements;
use setpoint_proto::meta::Quantity;

use crate::registry::path::Path;
use crate::registry::problems::Problems;

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

type Amounts = BTreeMap<String, Quantity>;

/// Writes every amount in the one way in which Kubernetes writes it.
pub fn canonicalise(amounts: &mut Amounts) {
    for quantity in amounts.values_mut() {
        if let Ok(amount) = Amount::parse(&quantity.string) {
            quantity.string = amount.canonical();
        }
    }
}

/// Are the amounts amounts, of something there is, and no request above its limit?
pub fn validate(resources: &ResourceRequirements, path: &Path<'_>, problems: &mut Problems) {
    let (limits, requests) = (path.field("limits"), path.field("requests"));
    validate_amounts(&resources.limits, &limits, problems);
    validate_amounts(&resources.requests, &requests, problems);
    let amount = |quantity: &Quantity| Amount::parse(&quantity.string).ok();
    for (name, request) in &resources.requests {
        let Some(limit) = resources.limits.get(name) else {
            continue;
        };
        if amount(request) > amount(limit) {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            problems.invalid(&requests.key(name), request, detail);
        }
    }
}

fn validate_amounts(amounts: &Amounts, path: &Path<'_>, problems: &mut Problems) {
    for (name, quantity) in amounts {
        let path = path.key(name);
        validate_name(name, &path, problems);
        match Amount::parse(&quantity.string) {
            Err(error) => problems.invalid(&path, quantity, error),
            Ok(amount) => validate_amount(name, amount, quantity, &path, problems),
        }
    }
}

/// No amount is negative, and what is not cut into parts is whole.
pub fn validate_amount(
    name: &str,
    amount: Amount,
    quantity: &Quantity,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if amount < Amount::ZERO {
        problems.invalid(path, quantity, "must be greater than or equal to 0");
    }
    let whole = amount == Amount::from_value(amount.value());
    if !whole && is_counted(name) {
        problems.invalid(path, quantity, "must be an integer");
    }
}

/// Is it one of what is counted, not measured?
fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Is it a resource that somebody else than Kubernetes defined?
fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    let in_quotas = format!("requests.{name}");
    !native
        && !name.starts_with("requests.")
        && names::validate_qualified_name(&in_quotas).is_empty()
}

fn validate_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let standard = ["cpu", "memory", "ephemeral-storage"].contains(&name);
    if standard || name.starts_with("hugepages-") {
        return;
    }
    problems.all_invalid(path, name, names::validate_qualified_name(name));
    if !name.contains('/') {
        problems.invalid(
            path,
            name,
            "must be a standard resource type or fully qualified",
        );
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
        let mut problems = Problems::default();
        validate(&resources, &Path::root("resources"), &mut problems);
        problems.to_string()
    }

    #[test]
    fn nobody_may_request_more_than_the_limit() {
        assert_eq!(complaints(("cpu", "100m"), ("cpu", "1")), "[]");
        assert_eq!(
            complaints(("cpu", "2"), ("cpu", "1")),
            r#"resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1"#
        );
    }

    #[test]
    fn a_resource_has_a_known_or_a_full_name() {
        assert_eq!(complaints(("example.com/gpu", "1"), ("memory", "1")), "[]");
        let complaint = complaints(("gpu", "1"), ("memory", "1"));
        assert!(complaint.contains("must be a standard resource type or fully qualified"));
        let complaint = complaints(("cpu", "-1"), ("memory", "1"));
        assert!(complaint.contains("must be greater than or equal to 0"));
    }
}
