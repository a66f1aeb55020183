//! The limits that follow from the resources of a Pod as a whole (KEP-2837). Pure.

use setpoint_model::amounts::Quantities;
use setpoint_model::quantity::Amount;
use setpoint_model::{Resources, amounts, resource_name};
use setpoint_proto::core::PodSpec;
use setpoint_runtime::{Limits, PodResources};

/// Returns the limits of a Pod with resources of CPU or memory of its own; `None` of one without. As upstream's
/// `ResourceConfigForPod`.
pub fn of(spec: &PodSpec) -> Option<PodResources> {
    let own = spec.resources.as_ref()?;
    let names = ["cpu", "memory"];
    let is_set = |name| own.requests.contains_key(name) || own.limits.contains_key(name);
    if !names.into_iter().any(is_set) {
        return None;
    }
    let of_pod = amounts::of_list(&own.limits);
    let each = |name: &str| of_pod.get(name).copied().unwrap_or(Amount::ZERO);
    let (cpu, memory) = (each("cpu"), each("memory"));
    Some(PodResources {
        all: Limits {
            millicpu_share: Resources::of_pod(spec).millicpu,
            millicpu: together(spec, "cpu", cpu).millis(),
            memory: together(spec, "memory", memory).value(),
        },
        each: Limits {
            // The engine derives the share of a container without a request from its limit.
            millicpu_share: cpu.millis(),
            millicpu: cpu.millis(),
            memory: memory.value(),
        },
    })
}

/// Returns the requests of a Pod, those of its own in place of the sum of its containers (upstream's `PodRequests`).
pub fn requests(spec: &PodSpec) -> Quantities {
    let mut requests = amounts::of_containers(spec, |resources| &resources.requests);
    let own = spec
        .resources
        .iter()
        .flat_map(|own| amounts::of_list(&own.requests));
    let pod_level = |name: &str| {
        ["cpu", "memory"].contains(&name) || name.starts_with(resource_name::HUGE_PAGES)
    };
    requests.extend(own.filter(|(name, _)| pod_level(name)));
    amounts::add(&mut requests, &amounts::of_list(&spec.overhead));
    amounts::to_list(&requests)
}

/// Returns what the runtime of a Pod needs besides its containers.
pub fn overhead(spec: &PodSpec) -> Limits {
    let amounts = amounts::of_list(&spec.overhead);
    let amount = |name| amounts.get(name).copied().unwrap_or(Amount::ZERO);
    Limits {
        millicpu_share: amount("cpu").millis(),
        millicpu: amount("cpu").millis(),
        memory: amount("memory").value(),
    }
}

/// Returns the limit of all containers together, with the overhead of the Pod: its own, or their sum if each has one.
fn together(spec: &PodSpec, name: &str, own: Amount) -> Amount {
    let mut containers = spec.init_containers.iter().chain(&spec.containers);
    let is_limited = containers.all(|container| {
        let limits = amounts::of_list(&container.resources.limits);
        limits.get(name).is_some_and(|limit| *limit > Amount::ZERO)
    });
    let sum = || {
        let sums = amounts::of_containers(spec, |resources| &resources.limits);
        sums.get(name).copied().filter(|_| is_limited)
    };
    let limit = match own > Amount::ZERO {
        true => Some(own),
        false => sum(),
    };
    let overhead = amounts::of_list(&spec.overhead).get(name).copied();
    let overhead = overhead.unwrap_or(Amount::ZERO);
    limit.map_or(Amount::ZERO, |limit| limit + overhead)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use setpoint_proto::core::{Container, ResourceRequirements};
    use setpoint_proto::meta::Quantity;

    use super::*;

    fn list(amounts: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
        let entry = |(name, amount): &(&str, &str)| ((*name).to_owned(), Quantity::new(*amount));
        amounts.iter().map(entry).collect()
    }

    fn spec(own: &[(&str, &str)], containers: &[&[(&str, &str)]]) -> PodSpec {
        let container = |limits: &&[(&str, &str)]| Container {
            resources: ResourceRequirements {
                limits: list(limits),
                ..ResourceRequirements::default()
            },
            ..Container::default()
        };
        PodSpec {
            containers: containers.iter().map(container).collect(),
            resources: Some(ResourceRequirements {
                limits: list(own),
                requests: list(&[("cpu", "500m")]),
                ..ResourceRequirements::default()
            }),
            overhead: list(&[("cpu", "10m"), ("memory", "1")]),
            ..PodSpec::default()
        }
    }

    #[test]
    fn the_limits_of_a_pod_are_its_own_or_the_sum_of_its_containers_if_all_have_one() {
        let both = [("cpu", "1"), ("memory", "100")];
        for (own, containers, cpu, memory) in [
            (&both[..], &[&[][..], &[]][..], 1010, 101),
            (&both[..1], &[&both[1..], &both[1..]], 1010, 201),
            (&both[..1], &[&both[1..], &[]], 1010, 0),
        ] {
            let found = of(&spec(own, containers)).unwrap();
            let expected = Limits {
                millicpu_share: 510,
                millicpu: cpu,
                memory,
            };
            assert_eq!(found.all, expected, "{containers:?}");
            assert_eq!(found.each.millicpu, 1000, "without the overhead");
        }
    }

    #[test]
    fn a_pod_without_resources_of_its_own_has_none() {
        assert_eq!(of(&PodSpec::default()), None);
        let mut spec = spec(&[("hugepages-2Mi", "2Mi")], &[]);
        spec.resources.as_mut().unwrap().requests.clear();
        assert_eq!(of(&spec), None);
    }

    #[test]
    fn what_either_allows_is_the_larger_limit_or_none() {
        let limits = |millicpu, memory| Limits {
            millicpu_share: millicpu,
            millicpu,
            memory,
        };
        assert_eq!(limits(5, 9).raised_to(limits(7, 0)), limits(7, 0));
        assert_eq!(limits(0, 9).or(limits(7, 1)), limits(7, 9));
    }
}
