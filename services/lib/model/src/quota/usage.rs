//! The resources that an object uses.

use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_proto::Resource as _;
use setpoint_proto::core::{
    PersistentVolumeClaim, Pod, PodSpec, ResourceRequirements, Service, ServicePort,
};
use setpoint_proto::resource::{DeviceRequest, ResourceClaim};

use crate::amounts::{self, Amounts, Quantities};
use crate::pod;
use crate::quantity::Amount;
use crate::resource_name::{HUGE_PAGES, REQUESTS, is_extended, is_native};
use crate::time::seconds_after;

/// The resources of Pods, besides huge pages and extended resources.
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const OF_SERVICES: [&str; 4] = [
    "count/services",
    "services",
    "services.nodeports",
    "services.loadbalancers",
];
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// Kinds whose numbers have a second name.
const NUMBERS: [&str; 6] = [
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];
/// Between the name of a storage class and the resource, in quotas of one class.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// After the name of a device class, in quotas of its devices.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// The largest number of devices that a claim can be allocated, which one that requests all is counted with.
const ALL_DEVICES: i64 = 32;
/// The old form of the field with the storage class.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// The prefix of the number of objects of a kind.
const COUNT: &str = "count/";
/// Kinds that no quota counts, as upstream.
const UNCOUNTED: [&str; 2] = ["events", "events.events.k8s.io"];
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Returns whether objects of a kind, named by its plural with the group, use the resource.
pub fn tracks(resource: &str, name: &str) -> bool {
    match resource {
        Pod::RESOURCE => {
            let huge = name.strip_prefix(REQUESTS).unwrap_or(name);
            let extended = name.starts_with(REQUESTS) && !is_native(name);
            OF_PODS.contains(&name) || huge.starts_with(HUGE_PAGES) || extended
        }
        Service::RESOURCE => OF_SERVICES.contains(&name),
        PersistentVolumeClaim::RESOURCE => {
            let plain = name.rsplit_once(OF_CLASS).map_or(name, |(_, plain)| plain);
            number_of(name) == Some(resource) || OF_CLAIMS.contains(&plain)
        }
        ResourceClaim::RESOURCE => number_of(name) == Some(resource) || name.ends_with(DEVICES),
        _ => number_of(name) == Some(resource),
    }
}

/// Returns whether objects of a kind use different amounts, so that their number is not enough.
pub fn is_measured(resource: &str) -> bool {
    [
        Pod::RESOURCE,
        Service::RESOURCE,
        PersistentVolumeClaim::RESOURCE,
        ResourceClaim::RESOURCE,
    ]
    .contains(&resource)
}

/// Returns the kind of which a resource is the number of all objects; `None` for amounts, and for `pods`, which is the
/// number of those that have not ended.
pub fn number_of(name: &str) -> Option<&str> {
    let counted = name.strip_prefix(COUNT);
    let counted = counted.or_else(|| NUMBERS.contains(&name).then_some(name));
    counted.filter(|resource| !UNCOUNTED.contains(resource))
}

/// Returns the resources that an object uses of a kind whose objects only count.
pub fn of_other(resource: &str) -> Amounts {
    let mut used = one(&format!("{COUNT}{resource}"));
    if NUMBERS.contains(&resource) {
        used.extend(one(resource));
    }
    used
}

fn one(name: &str) -> Amounts {
    [(name.to_owned(), Amount::from_value(1))].into()
}

/// Returns the resources that a Pod uses at the moment `now`. One that has terminated, or whose grace period is over,
/// uses no more than its place in the store.
pub fn of_pod(pod: &Pod, now: Timestamp) -> Amounts {
    let mut used = one("count/pods");
    if pod::is_terminal(pod) || overdue_at(pod).is_some_and(|end| now > end) {
        return used;
    }
    used.extend(one("pods"));
    let spec = &pod.spec;
    let overhead = amounts::of_list(&spec.overhead);
    let mut requests = of_spec(spec, |resources| &resources.requests);
    let mut limits = of_spec(spec, |resources| &resources.limits);
    amounts::add(&mut requests, &overhead);
    // The overhead raises a limit only where there is one.
    let limited = overhead.into_iter();
    let limited = limited
        .filter(|(name, _)| limits.contains_key(name))
        .collect();
    amounts::add(&mut limits, &limited);
    used.extend(of_lists(&requests, &limits));
    used
}

/// Returns the end of the grace period of a Pod that is being deleted, after which it is not counted any more.
pub fn overdue_at(pod: &Pod) -> Option<Timestamp> {
    let meta = &pod.metadata;
    let deadline = meta.deletion_timestamp.and_then(|time| time.timestamp())?;
    Some(seconds_after(deadline, meta.deletion_grace_period_seconds?))
}

/// Returns the resources of requests and limits, by their names in quotas.
pub fn of_lists(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::new();
    for (name, amount) in requests {
        if COMPUTE.contains(&name.as_str()) || name.starts_with(HUGE_PAGES) {
            used.insert(name.clone(), *amount);
            used.insert(format!("{REQUESTS}{name}"), *amount);
        } else if is_extended(name) {
            used.insert(format!("{REQUESTS}{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if COMPUTE.contains(&name.as_str()) {
            used.insert(format!("limits.{name}"), *amount);
        }
    }
    used
}

/// Returns the sum over the containers, with the amounts of the Pod as a whole in their place.
fn of_spec(spec: &PodSpec, list: impl Fn(&ResourceRequirements) -> &Quantities) -> Amounts {
    let mut sum = amounts::of_containers(spec, &list);
    if let Some(own) = &spec.resources {
        sum.extend(amounts::of_list(list(own)));
    }
    sum
}

/// Returns the resources that a Service uses.
pub fn of_service(service: &Service) -> Amounts {
    let spec = &service.spec;
    let all = spec.ports.len();
    let set = |port: &&ServicePort| port.node_port != 0;
    let node_ports = match spec.r#type.as_str() {
        "NodePort" => all,
        "LoadBalancer" if spec.allocate_load_balancer_node_ports == Some(false) => {
            spec.ports.iter().filter(set).count()
        }
        "LoadBalancer" => all,
        _ => 0,
    };
    let balancers = i64::from(spec.r#type == "LoadBalancer");
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    let mut used = one("count/services");
    used.extend(one("services"));
    used.insert("services.nodeports".into(), Amount::from_value(node_ports));
    used.insert(
        "services.loadbalancers".into(),
        Amount::from_value(balancers),
    );
    used
}

/// Returns the resources that a claim uses.
pub fn of_claim(claim: &PersistentVolumeClaim) -> Amounts {
    let mut used = one("count/persistentvolumeclaims");
    let mut plain = one(OF_CLAIMS[0]);
    if let Some(storage) = storage(claim) {
        plain.insert(OF_CLAIMS[1].into(), storage);
    }
    let annotation = claim.metadata.annotations.get(CLASS_ANNOTATION);
    let class = annotation.or(claim.spec.storage_class_name.as_ref());
    if let Some(class) = class.filter(|class| !class.is_empty()) {
        let of_class = plain.iter();
        used.extend(of_class.map(|(name, amount)| (format!("{class}{OF_CLASS}{name}"), *amount)));
    }
    used.extend(plain);
    used
}

/// Returns the resources that a ResourceClaim uses: itself, and the devices of each class that it requests.
pub fn of_resource_claim(claim: &ResourceClaim) -> Amounts {
    let mut used = of_other(ResourceClaim::RESOURCE);
    for request in &claim.spec.devices.requests {
        let devices = devices_of(request).into_iter();
        let devices = devices.map(|(class, number)| {
            let number = Amount::from_value(number);
            (format!("{class}{DEVICES}"), number)
        });
        amounts::add(&mut used, &devices.collect());
    }
    used
}

/// Returns the devices that a request may be allocated, by their class: of alternatives the most of each class.
fn devices_of(request: &DeviceRequest) -> BTreeMap<&str, i64> {
    let alternatives = request.first_available.iter();
    let alternatives =
        alternatives.map(|one| (&one.device_class_name, &one.allocation_mode, one.count));
    let exactly = request
        .exactly
        .iter()
        .filter(|_| request.first_available.is_empty());
    let exactly = exactly.map(|one| (&one.device_class_name, &one.allocation_mode, one.count));
    let mut devices = BTreeMap::new();
    for (class, mode, count) in alternatives.chain(exactly) {
        let number = match mode.as_str() {
            "ExactCount" => count,
            "All" => ALL_DEVICES,
            _ => 0,
        };
        let most = devices.entry(class.as_str()).or_insert(0);
        *most = number.max(*most);
    }
    devices
}

/// Returns the storage that a claim requests, or that it was allocated if that is more, in whole bytes.
fn storage(claim: &PersistentVolumeClaim) -> Option<Amount> {
    let amount = |list: &Quantities| Amount::parse(&list.get("storage")?.string).ok();
    let requested = amount(&claim.spec.resources.requests)?;
    let allocated = amount(&claim.status.allocated_resources);
    let larger = allocated.map_or(requested, |allocated| allocated.max(requested));
    let whole = Amount::from_value(larger.value());
    // Only a fraction is rounded, so that the notation is kept.
    Some(if whole == larger { larger } else { whole })
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container;
    use setpoint_proto::meta::Quantity;
    use setpoint_proto::resource::{DeviceSubRequest, ExactDeviceRequest};

    use super::*;

    fn list(amounts: &[(&str, &str)]) -> Quantities {
        let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), Quantity::new(*text));
        amounts.iter().map(entry).collect()
    }

    fn used(used: &Amounts) -> String {
        let used = amounts::to_list(used);
        let used: Vec<_> = used
            .iter()
            .map(|(name, used)| format!("{name}={used}"))
            .collect();
        used.join(" ")
    }

    #[test]
    fn a_pod_uses_requests_limits_and_its_overhead() {
        let mut container = Container::default();
        container.resources.requests = list(&[
            ("cpu", "1"),
            ("hugepages-2Mi", "4Mi"),
            ("example.com/gpu", "2"),
        ]);
        container.resources.limits = list(&[("memory", "1Gi")]);
        let mut pod = Pod::default();
        pod.spec.containers = vec![container];
        pod.spec.overhead = list(&[("cpu", "250m"), ("memory", "1Gi")]);
        assert_eq!(
            used(&of_pod(&pod, Timestamp::UNIX_EPOCH)),
            "count/pods=1 cpu=1250m hugepages-2Mi=4Mi limits.memory=2Gi memory=1Gi pods=1 requests.cpu=1250m \
            requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi requests.memory=1Gi"
        );
        pod.status.phase = "Succeeded".into();
        assert_eq!(used(&of_pod(&pod, Timestamp::UNIX_EPOCH)), "count/pods=1");
    }

    #[test]
    fn a_service_uses_node_ports_and_a_load_balancer_by_its_type() {
        let mut service = Service::default();
        service.spec.ports = vec![ServicePort::default(), ServicePort::default()];
        let with = |service: &Service| used(&of_service(service));
        let none = "count/services=1 services=1 services.loadbalancers=0 services.nodeports=0";
        assert_eq!(with(&service), none);
        service.spec.r#type = "LoadBalancer".into();
        let both = "count/services=1 services=1 services.loadbalancers=1 services.nodeports=2";
        assert_eq!(with(&service), both);
        service.spec.allocate_load_balancer_node_ports = Some(false);
        let one = "count/services=1 services=1 services.loadbalancers=1 services.nodeports=0";
        assert_eq!(with(&service), one);
    }

    #[test]
    fn a_claim_uses_storage_of_its_class() {
        let mut claim = PersistentVolumeClaim::default();
        claim.spec.resources.requests = list(&[("storage", "1Gi")]);
        claim.spec.storage_class_name = Some("gold".into());
        assert_eq!(
            used(&of_claim(&claim)),
            "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 \
            gold.storageclass.storage.k8s.io/requests.storage=1Gi persistentvolumeclaims=1 requests.storage=1Gi"
        );
        let claims = "persistentvolumeclaims";
        for name in [
            "requests.storage",
            "gold.storageclass.storage.k8s.io/requests.storage",
        ] {
            assert!(tracks(claims, name), "{name}");
        }
        assert!(!tracks(claims, "requests.cpu"));
    }

    fn exactly(class: &str, mode: &str, count: i64) -> DeviceRequest {
        let exactly = ExactDeviceRequest {
            device_class_name: class.into(),
            allocation_mode: mode.into(),
            count,
            ..Default::default()
        };
        DeviceRequest {
            exactly: Some(exactly),
            ..Default::default()
        }
    }

    fn first_of(alternatives: &[(&str, &str, i64)]) -> DeviceRequest {
        let alternatives = alternatives.iter();
        let first_available = alternatives.map(|(class, mode, count)| DeviceSubRequest {
            device_class_name: (*class).into(),
            allocation_mode: (*mode).into(),
            count: *count,
            ..Default::default()
        });
        DeviceRequest {
            first_available: first_available.collect(),
            ..Default::default()
        }
    }

    /// Upstream's own cases (`TestResourceClaimEvaluatorUsage`).
    #[test]
    fn a_resource_claim_uses_the_devices_of_each_class_that_it_may_be_allocated() {
        let one = exactly("gpu", "ExactCount", 1);
        for (requests, expected) in [
            (vec![one.clone()], "gpu=1"),
            (vec![one; 5], "gpu=5"),
            (vec![exactly("gpu", "ExactCount", 5)], "gpu=5"),
            (vec![exactly("gpu", "All", 0)], "gpu=32"),
            (vec![exactly("gpu", "future-mode", 1)], "gpu=0"),
            (vec![first_of(&[("gpu", "ExactCount", 1)])], "gpu=1"),
            (
                vec![first_of(&[
                    ("gpu", "ExactCount", 2),
                    ("gpu", "ExactCount", 1),
                ])],
                "gpu=2",
            ),
            (
                vec![first_of(&[("gpu", "ExactCount", 1), ("gpu", "All", 0)])],
                "gpu=32",
            ),
            (
                vec![first_of(&[("gpu", "ExactCount", 1), ("tpu", "All", 0)])],
                "gpu=1 tpu=32",
            ),
        ] {
            let mut claim = ResourceClaim::default();
            claim.spec.devices.requests = requests;
            let text = used(&of_resource_claim(&claim)).replace(DEVICES, "");
            let expected = format!("count/resourceclaims.resource.k8s.io=1 {expected}");
            assert_eq!(text, expected);
        }
        let claims = "resourceclaims.resource.k8s.io";
        assert!(tracks(claims, "gpu.deviceclass.resource.k8s.io/devices"));
        assert!(tracks(claims, "count/resourceclaims.resource.k8s.io"));
        for name in [
            "resourceclaims",
            "storage",
            "ephemeral-storage",
            "bronze.deviceclass.resource.k8s.io/storage",
            "gpu.storage.k8s.io/requests.storage",
        ] {
            assert!(!tracks(claims, name), "{name}");
        }
    }

    #[test]
    fn a_pod_whose_grace_period_is_over_uses_only_its_place() {
        let mut pod = Pod::default();
        let deleted = Timestamp::from_second(100).unwrap();
        pod.metadata.deletion_timestamp = Some(deleted.into());
        pod.metadata.deletion_grace_period_seconds = Some(30);
        let at = |second| used(&of_pod(&pod, Timestamp::from_second(second).unwrap()));
        assert_eq!(at(130), "count/pods=1 pods=1");
        assert_eq!(at(131), "count/pods=1");
    }

    #[test]
    fn other_kinds_are_counted_by_their_resource() {
        assert!(tracks("secrets", "secrets") && tracks("secrets", "count/secrets"));
        assert!(tracks("deployments.apps", "count/deployments.apps"));
        assert!(!tracks("deployments.apps", "deployments.apps"));
        assert!(!tracks("events", "count/events"));
        assert_eq!(used(&of_other("secrets")), "count/secrets=1 secrets=1");
        assert_eq!(
            used(&of_other("tabs.example.com")),
            "count/tabs.example.com=1"
        );
    }

    #[test]
    fn a_number_of_all_objects_is_told_from_amounts() {
        let numbers = [
            "count/pods",
            "count/tabs.example.com",
            "services",
            "secrets",
        ];
        for name in numbers {
            assert!(number_of(name).is_some(), "{name}");
        }
        for name in ["pods", "requests.cpu", "services.nodeports", "count/events"] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
