//! Amounts that containers ask for and are limited to.

use std::collections::BTreeMap;

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::ResourceRequirements;
use setpoint_proto::meta::Quantity;

use crate::registry::path::Path;
use crate::registry::problems::Problems;

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
            Ok(amount) if amount.millis() < 0 => {
                problems.invalid(&path, quantity, "must be greater than or equal to 0");
            }
            Ok(_) => {}
        }
    }
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
