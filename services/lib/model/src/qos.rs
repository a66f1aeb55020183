//! The quality-of-service class of a Pod.

use setpoint_proto::core::{Container, PodSpec};

use crate::quantity::Amount;

/// Returns the class: `Guaranteed` if the limits of CPU and memory of every container equal its requests, `BestEffort` if
/// no container has any, otherwise `Burstable`.
pub fn qos_class(spec: &PodSpec) -> &'static str {
    let containers = || spec.init_containers.iter().chain(&spec.containers);
    if containers().all(is_unspecified) {
        "BestEffort"
    } else if containers().all(is_guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

const COMPUTE_RESOURCES: [&str; 2] = ["cpu", "memory"];

fn is_unspecified(container: &Container) -> bool {
    let resources = &container.resources;
    let specified =
        |name| resources.limits.contains_key(name) || resources.requests.contains_key(name);
    !COMPUTE_RESOURCES.into_iter().any(specified)
}

fn is_guaranteed(container: &Container) -> bool {
    let resources = &container.resources;
    let amount = |quantity: &setpoint_proto::meta::Quantity| Amount::parse(&quantity.string).ok();
    COMPUTE_RESOURCES
        .into_iter()
        .all(|name| match resources.limits.get(name) {
            None => false,
            Some(limit) => resources
                .requests
                .get(name)
                .is_none_or(|request| amount(request) == amount(limit)),
        })
}

#[cfg(test)]
mod tests {
    use setpoint_proto::meta::Quantity;

    use super::*;

    fn class(limits: &[(&str, &str)], requests: &[(&str, &str)]) -> &'static str {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Quantity::new(*text)));
            pairs.collect()
        };
        let mut container = Container::default();
        container.resources.limits = map(limits);
        container.resources.requests = map(requests);
        qos_class(&PodSpec {
            containers: vec![container],
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
    }
}
