//! Amounts of resources: the capacity of nodes and the requests of Pods.
//!
//! Sums saturate, since amounts that clients set may exceed an `i64` together.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_proto::core::{Container, ContainerStatus, Pod, PodSpec, ResourceRequirements};
use setpoint_proto::meta::Quantity;

use crate::pod::{is_resize_infeasible, is_sidecar};
use crate::quantity::Amount;

/// The assumed requests of containers without requests in the scoring of nodes (upstream's non-zero requests).
const ASSUMED_MILLICPU: i64 = 100;
const ASSUMED_MEMORY: i64 = 200 << 20;

/// Amounts of CPU, memory and other resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU in thousandths.
    pub millicpu: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Other resources by name, such as ephemeral storage, huge pages and devices; in whole units.
    pub others: BTreeMap<String, i64>,
}

/// Amounts by the name of their resource, as in the API.
type List = BTreeMap<String, Quantity>;

impl Resources {
    /// Returns the amounts that a Pod takes from its node: its requests, or while it is resized, the greatest of those,
    /// the allocated ones, and the ones that its containers have. The requests of a resize that its node can never
    /// allocate do not count.
    pub fn held_by(pod: &Pod) -> Self {
        held(pod, Self::of_list)
    }

    /// Returns the requests of a Pod, as upstream's `PodRequests`: those of [its containers](Self::of_containers), with
    /// the requests of `spec.resources` in their place where these are set, plus its overhead.
    pub fn of_pod(spec: &PodSpec) -> Self {
        sum(spec, |container| {
            Self::of_list(&container.resources.requests)
        })
    }

    /// Returns the sum of `of` over the containers of a Pod, as upstream's `AggregateContainerRequests`: that of its
    /// containers and sidecars, or if greater, that of an init container and the sidecars started before it.
    pub fn of_containers(spec: &PodSpec, of: impl Fn(&Container) -> Self) -> Self {
        let mut total = Self::default();
        let (mut sidecars, mut largest) = (Self::default(), Self::default());
        spec.containers
            .iter()
            .for_each(|container| total.add(&of(container)));
        for container in &spec.init_containers {
            let mut concurrent = of(container);
            if is_sidecar(container) {
                total.add(&concurrent);
                sidecars.add(&concurrent);
            } else {
                concurrent.add(&sidecars);
                largest.raise_to(&concurrent);
            }
        }
        total.raise_to(&largest);
        total
    }

    /// Returns the CPU and memory of a Pod for the scoring of nodes: as [`Resources::held_by`], but with assumed
    /// amounts for containers that request none.
    pub fn assumed_of_pod(pod: &Pod) -> Self {
        let assumed = held(pod, |requests| {
            let mut resources = Self::of_list(requests);
            if !requests.contains_key("cpu") {
                resources.millicpu = ASSUMED_MILLICPU;
            }
            if !requests.contains_key("memory") {
                resources.memory = ASSUMED_MEMORY;
            }
            resources
        });
        Self {
            others: BTreeMap::new(),
            ..assumed
        }
    }

    /// Returns the amounts of a resource list. Ignores invalid quantities, which the gateway rejects, and `pods`, which
    /// Pods do not request.
    pub fn of_list(list: &BTreeMap<String, Quantity>) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in list {
            let Ok(amount) = Amount::parse(&quantity.string) else {
                continue;
            };
            match name.as_str() {
                "cpu" => resources.millicpu = amount.millis(),
                "memory" => resources.memory = amount.value(),
                "pods" => {}
                _ => drop(resources.others.insert(name.clone(), amount.value())),
            }
        }
        resources
    }

    /// Adds `more`, saturating.
    pub fn add(&mut self, more: &Self) {
        self.combine(more, i64::saturating_add);
    }

    /// Returns the names of the resources of which less than `wanted` is left after subtracting `used`.
    pub fn lacking<'a>(
        &'a self,
        used: &'a Self,
        wanted: &'a Self,
    ) -> impl Iterator<Item = &'a str> {
        let short = |have: i64, used: i64, want: i64| want > 0 && want > have.saturating_sub(used);
        let cpu = short(self.millicpu, used.millicpu, wanted.millicpu).then_some("cpu");
        let memory = short(self.memory, used.memory, wanted.memory).then_some("memory");
        let others = wanted.others.iter().filter(move |(name, want)| {
            let of = |side: &Self| side.others.get(*name).copied().unwrap_or_default();
            short(of(self), of(used), **want)
        });
        cpu.into_iter()
            .chain(memory)
            .chain(others.map(|(name, _)| name.as_str()))
    }

    fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    fn combine(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.millicpu = with(self.millicpu, other.millicpu);
        self.memory = with(self.memory, other.memory);
        for (name, &amount) in &other.others {
            let mine = self.others.entry(name.clone()).or_default();
            *mine = with(*mine, amount);
        }
    }

    /// Replaces the amounts that `spec.resources` may set: CPU, memory and huge pages.
    fn replace(&mut self, requests: &BTreeMap<String, Quantity>) {
        let own = Self::of_list(requests);
        if requests.contains_key("cpu") {
            self.millicpu = own.millicpu;
        }
        if requests.contains_key("memory") {
            self.memory = own.memory;
        }
        let huge_pages = own.others.into_iter();
        let huge_pages = huge_pages.filter(|(name, _)| name.starts_with("hugepages-"));
        self.others.extend(huge_pages);
    }
}

/// Returns the sum that a Pod takes from its node, as upstream's `PodRequests` with the resources of the status.
fn held(pod: &Pod, of: impl Fn(&List) -> Resources) -> Resources {
    let spec = &pod.spec;
    let requested = sum(spec, |container| of(&container.resources.requests));
    let infeasible = is_resize_infeasible(&pod.status);
    if !infeasible && !is_resized(pod) {
        return requested;
    }
    let none = List::new();
    let otherwise = |container: &Container| match infeasible {
        true => of(&none),
        false => of(&container.resources.requests),
    };
    let reported = pod.status.resources.as_ref().or(spec.resources.as_ref());
    let own = spec.resources.as_ref().and(reported);
    let mut held = sum_with(spec, own, |container| {
        let allocated = status(pod, container).and_then(allocated);
        allocated.map_or_else(|| otherwise(container), &of)
    });
    held.raise_to(&sum_with(spec, own, |container| {
        let actual = status(pod, container).and_then(|status| actual(status).or(allocated(status)));
        actual.map_or_else(|| otherwise(container), &of)
    }));
    if !infeasible {
        held.raise_to(&requested);
    }
    held
}

/// Returns whether the status of the Pod or of a container has other requests than its spec.
fn is_resized(pod: &Pod) -> bool {
    let spec = &pod.spec;
    if let (Some(own), Some(reported)) = (&spec.resources, &pod.status.resources)
        && own.requests != reported.requests
    {
        return true;
    }
    let mut all = spec.init_containers.iter().chain(&spec.containers);
    all.any(|container| {
        let requests = Some(&container.resources.requests);
        status(pod, container).is_some_and(|status| {
            let reported = [allocated(status), actual(status)];
            let mut reported = reported.into_iter().filter(Option::is_some);
            reported.any(|reported| reported != requests)
        })
    })
}

fn status<'p>(pod: &'p Pod, container: &Container) -> Option<&'p ContainerStatus> {
    let status = &pod.status;
    let mut all = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses);
    all.find(|status| status.name == container.name)
}

fn allocated(status: &ContainerStatus) -> Option<&List> {
    Some(&status.allocated_resources).filter(|list| !list.is_empty())
}

fn actual(status: &ContainerStatus) -> Option<&List> {
    let resources = status.resources.as_ref();
    resources
        .map(|resources| &resources.requests)
        .filter(|list| !list.is_empty())
}

fn sum(spec: &PodSpec, of: impl Fn(&Container) -> Resources) -> Resources {
    sum_with(spec, spec.resources.as_ref(), of)
}

/// Returns the sum over the containers, with the requests of the Pod as a whole in their place where these are set.
fn sum_with(
    spec: &PodSpec,
    own: Option<&ResourceRequirements>,
    of: impl Fn(&Container) -> Resources,
) -> Resources {
    let mut total = Resources::of_containers(spec, of);
    if let Some(own) = own {
        total.replace(&own.requests);
    }
    total.add(&Resources::of_list(&spec.overhead));
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use setpoint_proto::core::PodCondition;

    use super::*;
    use crate::pod::{INFEASIBLE, RESIZE_PENDING};

    fn list(amounts: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
        let entry = |(name, amount): &(&str, &str)| ((*name).to_owned(), Quantity::new(*amount));
        amounts.iter().map(entry).collect()
    }

    fn container(amounts: &[(&str, &str)]) -> Container {
        Container {
            resources: ResourceRequirements {
                requests: list(amounts),
                ..Default::default()
            },
            ..Default::default()
        }
    }

    fn sidecar(cpu: &str) -> Container {
        Container {
            restart_policy: Some("Always".into()),
            ..container(&[("cpu", cpu)])
        }
    }

    fn spec(init: Vec<Container>, containers: Vec<Container>) -> PodSpec {
        PodSpec {
            init_containers: init,
            containers,
            ..Default::default()
        }
    }

    #[test]
    fn a_pod_requests_the_sum_of_its_containers_or_its_largest_init_container() {
        let cpu = |amount| container(&[("cpu", amount)]);
        let mut pod = spec(Vec::new(), vec![cpu("100m"), cpu("0.2")]);
        assert_eq!(Resources::of_pod(&pod).millicpu, 300);
        pod.init_containers = vec![cpu("1"), cpu("500m")];
        assert_eq!(Resources::of_pod(&pod).millicpu, 1000);
    }

    /// Checks F20: an init container runs concurrently with the sidecars before it only.
    #[test]
    fn sidecars_are_added_to_the_init_containers_after_them() {
        let (first, main) = (container(&[("cpu", "3")]), container(&[("cpu", "1")]));
        let pod = spec(vec![sidecar("2"), first.clone()], vec![main.clone()]);
        assert_eq!(Resources::of_pod(&pod).millicpu, 5000);
        let pod = spec(vec![first, sidecar("2")], vec![main.clone()]);
        assert_eq!(Resources::of_pod(&pod).millicpu, 3000);
        let pod = spec(vec![sidecar("2"), sidecar("1")], vec![main]);
        assert_eq!(Resources::of_pod(&pod).millicpu, 4000);
    }

    /// Checks F20.
    #[test]
    fn pod_level_requests_replace_those_of_containers_and_overhead_is_added() {
        let amounts = [
            ("cpu", "1"),
            ("memory", "5"),
            ("hugepages-2Mi", "1"),
            ("gpu", "1"),
        ];
        let mut pod = spec(Vec::new(), vec![container(&amounts)]);
        pod.overhead = list(&[("cpu", "250m"), ("memory", "1")]);
        let total = Resources::of_pod(&pod);
        assert_eq!((total.millicpu, total.memory), (1250, 6));
        let own = [("cpu", "3"), ("hugepages-2Mi", "4"), ("gpu", "9")];
        pod.resources = Some(ResourceRequirements {
            requests: list(&own),
            ..Default::default()
        });
        let total = Resources::of_pod(&pod);
        assert_eq!((total.millicpu, total.memory), (3250, 6));
        let others = [("gpu".to_owned(), 1), ("hugepages-2Mi".to_owned(), 4)];
        assert_eq!(total.others, others.into());
        pod.resources = Some(ResourceRequirements {
            requests: list(&[("memory", "2")]),
            ..Default::default()
        });
        let total = Resources::of_pod(&pod);
        assert_eq!((total.millicpu, total.memory), (1250, 3));
    }

    /// Checks F13 and C5: a sum beyond an `i64` exceeds any node.
    #[test]
    fn sums_of_requests_saturate() {
        let memory = || container(&[("memory", "7Ei")]);
        let huge = Resources::of_pod(&spec(Vec::new(), vec![memory(), memory()]));
        assert_eq!(huge.memory, i64::MAX);
        let node = Resources::of_list(&list(&[("memory", "8Gi"), ("pods", "110")]));
        let nothing = Resources::default();
        assert_eq!(node.others, BTreeMap::new());
        assert_eq!(
            node.lacking(&nothing, &huge).collect::<Vec<_>>(),
            ["memory"]
        );
        let small = Resources::of_pod(&spec(Vec::new(), vec![container(&[("memory", "1")])]));
        assert_eq!(node.lacking(&huge, &small).collect::<Vec<_>>(), ["memory"]);
    }

    #[test]
    fn a_request_of_zero_is_never_lacking() {
        let nothing = Resources::default();
        let full = Resources {
            millicpu: 5,
            ..Default::default()
        };
        assert_eq!(nothing.lacking(&full, &nothing).count(), 0);
        let gpu = Resources {
            others: [("gpu".to_owned(), 1)].into(),
            ..Default::default()
        };
        assert_eq!(nothing.lacking(&nothing, &gpu).collect::<Vec<_>>(), ["gpu"]);
        assert_eq!(gpu.lacking(&nothing, &gpu).count(), 0);
        assert_eq!(gpu.lacking(&gpu, &gpu).collect::<Vec<_>>(), ["gpu"]);
    }

    /// As in upstream, an explicit zero is not replaced.
    #[test]
    fn containers_without_requests_have_assumed_ones() {
        let containers = [
            &[][..],
            &[("cpu", "0")],
            &[("cpu", "1"), ("memory", "5"), ("gpu", "1")],
        ];
        let pod = Pod {
            spec: spec(Vec::new(), containers.map(container).into()),
            ..Default::default()
        };
        let assumed = Resources::assumed_of_pod(&pod);
        assert_eq!(assumed.millicpu, 100 + 1000);
        assert_eq!(assumed.memory, 2 * 200 * 1024 * 1024 + 5);
        assert!(assumed.others.is_empty());
    }

    fn resized(allocated: &str, actual: &str, pending: &str) -> Pod {
        let containers = vec![container(&[("cpu", "2")]), container(&[("cpu", "1")])];
        let mut pod = Pod {
            spec: spec(Vec::new(), containers),
            ..Default::default()
        };
        pod.spec.containers[0].name = "web".into();
        pod.status.container_statuses = vec![ContainerStatus {
            name: "web".into(),
            allocated_resources: list(&[("cpu", allocated)]),
            resources: Some(container(&[("cpu", actual)]).resources),
            ..Default::default()
        }];
        pod.status.conditions = vec![PodCondition {
            r#type: RESIZE_PENDING.into(),
            status: "True".into(),
            reason: pending.into(),
            ..Default::default()
        }];
        pod
    }

    /// Checks C5: a Pod never takes more than is counted, whatever the state of its resize.
    #[test]
    fn a_pod_that_is_resized_holds_the_greatest_of_what_it_wants_and_what_it_has() {
        let held = |allocated, actual, pending| {
            let pod = resized(allocated, actual, pending);
            Resources::held_by(&pod).millicpu
        };
        assert_eq!(held("2", "2", ""), 3000);
        assert_eq!(held("1", "1", "Deferred"), 3000, "it waits for more");
        assert_eq!(held("2", "4", ""), 5000, "it has not given it up yet");
        assert_eq!(held("4", "1", ""), 5000, "it is about to get it");
        // As upstream, without the container that has no status.
        assert_eq!(held("500m", "500m", INFEASIBLE), 500);
        let assumed = Resources::assumed_of_pod(&resized("2", "4", ""));
        assert_eq!(assumed.millicpu, 5000);
    }

    #[test]
    fn a_pod_whose_own_requests_shrink_holds_what_it_has_until_the_status_says_otherwise() {
        let own = |cpu| Some(container(&[("cpu", cpu)]).resources);
        let mut pod = Pod {
            spec: spec(Vec::new(), vec![container(&[("cpu", "1")])]),
            ..Default::default()
        };
        pod.spec.resources = own("2");
        assert_eq!(Resources::held_by(&pod).millicpu, 2000);
        pod.status.resources = own("3");
        assert_eq!(Resources::held_by(&pod).millicpu, 3000);
        pod.status.resources = own("1");
        assert_eq!(Resources::held_by(&pod).millicpu, 2000);
        let infeasible = resized("1", "1", INFEASIBLE).status.conditions;
        pod.status.conditions = infeasible;
        assert_eq!(Resources::held_by(&pod).millicpu, 1000);
    }

    fn any_resources() -> impl Strategy<Value = Resources> {
        let others = prop::collection::btree_map("[ab]", any::<i64>(), 0..3);
        (any::<i64>(), any::<i64>(), others).prop_map(|(millicpu, memory, others)| Resources {
            millicpu,
            memory,
            others,
        })
    }

    proptest! {
        /// Checks F13.
        #[test]
        fn arithmetic_on_any_amounts_does_not_overflow(
            a in any_resources(),
            b in any_resources(),
            c in any_resources(),
        ) {
            let mut sum = a.clone();
            sum.add(&b);
            prop_assert_eq!(sum.millicpu, a.millicpu.saturating_add(b.millicpu));
            let _ = a.lacking(&sum, &c).count();
        }
    }
}
