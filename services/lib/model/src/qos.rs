//! The quality-of-service class of a Pod.

use std::collections::BTreeMap;

use setpoint_proto::core::{PodSpec, ResourceRequirements};
use setpoint_proto::meta::Quantity;

use crate::quantity::Amount;

/// Returns the class: `Guaranteed` if the limits of CPU and memory of every container equal its requests, `BestEffort`
/// if no container has any, otherwise `Burstable`. Of a Pod with resources of its own only these count.
pub fn qos_class(spec: &PodSpec) -> &'static str {
    let resources: Vec<_> = match &spec.resources {
        Some(own) => vec![own],
        None => {
            let containers = spec.init_containers.iter().chain(&spec.containers);
            containers.map(|container| &container.resources).collect()
        }
    };
    if resources.iter().all(|one| is_unspecified(one)) {
        "BestEffort"
    } else if resources.iter().all(|one| is_guaranteed(one)) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

const COMPUTE_RESOURCES: [&str; 2] = ["cpu", "memory"];

fn is_unspecified(resources: &ResourceRequirements) -> bool {
    let specified = |name| {
        amount(&resources.limits, name).is_some() || amount(&resources.requests, name).is_some()
    };
    !COMPUTE_RESOURCES.into_iter().any(specified)
}

fn is_guaranteed(resources: &ResourceRequirements) -> bool {
    COMPUTE_RESOURCES.into_iter().all(|name| {
        let limit = amount(&resources.limits, name);
        let request = amount(&resources.requests, name);
        limit.is_some() && (request == limit || !resources.requests.contains_key(name))
    })
}

/// Returns an amount that is not zero.
fn amount(list: &BTreeMap<String, Quantity>, name: &str) -> Option<Amount> {
    let amount = Amount::parse(&list.get(name)?.string).ok()?;
    (amount > Amount::ZERO).then_some(amount)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container;

    use super::*;

    fn resources(limits: &[(&str, &str)], requests: &[(&str, &str)]) -> ResourceRequirements {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Quantity::new(*text)));
            pairs.collect()
        };
        ResourceRequirements {
            limits: map(limits),
            requests: map(requests),
            ..Default::default()
        }
    }

    fn class(limits: &[(&str, &str)], requests: &[(&str, &str)]) -> &'static str {
        class_of(limits, requests, None)
    }

    /// Returns the class of a Pod with one container, and resources of its own.
    fn class_of(
        limits: &[(&str, &str)],
        requests: &[(&str, &str)],
        own: Option<ResourceRequirements>,
    ) -> &'static str {
        qos_class(&PodSpec {
            containers: vec![Container {
                resources: resources(limits, requests),
                ..Default::default()
            }],
            resources: own,
            ..Default::default()
        })
    }

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        assert_eq!(class(&[], &[]), "BestEffort");
        assert_eq!(class(&[], &[("cpu", "1")]), "Burstable");
        let both = [("cpu", "1"), ("memory", "1Gi")];
        assert_eq!(class(&both, &[]), "Guaranteed");
        assert_eq!(class(&both, &[("cpu", "1000m")]), "Guaranteed");
        assert_eq!(class(&both, &[("cpu", "500m")]), "Burstable");
        assert_eq!(class(&[("cpu", "0")], &[("memory", "0")]), "BestEffort");
    }

    #[test]
    fn of_a_pod_with_resources_of_its_own_only_these_count() {
        let both = [("cpu", "1"), ("memory", "1Gi")];
        let own = |limits: &[_], requests: &[_]| Some(resources(limits, requests));
        assert_eq!(class_of(&[], &[], own(&both, &both)), "Guaranteed");
        let less = [("cpu", "1"), ("memory", "1Mi")];
        assert_eq!(class_of(&both, &both, own(&both, &less)), "Burstable");
        assert_eq!(class_of(&both, &both, own(&both[..1], &[])), "Burstable");
        assert_eq!(class_of(&both, &both, own(&[], &[])), "BestEffort");
    }
}
