//! The downward API: values of a Pod's fields and resources for environment variables and files. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, Pod, PodSpec, ResourceFieldSelector};
use setpoint_proto::meta::Quantity;

/// Resources whose limit defaults to the node's allocatable amount.
const NODE_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Resources whose limit defaults to that of the Pod first.
const POD_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// The values of a Pod's downward API that its node provides.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Address of the Pod; empty before it has a sandbox.
    pub pod_ip: String,
    /// Address of the node.
    pub host_ip: String,
    /// Allocatable resources of the node, by resource name.
    pub allocatable: Arc<BTreeMap<String, Quantity>>,
}

/// Returns the value of a field by its path; `None` if the downward API does not offer it.
pub fn field(pod: &Pod, placement: &Placement, path: &str) -> Option<String> {
    let meta = &pod.metadata;
    if let Some((map, rest)) = path.split_once("['") {
        let map = match map {
            "metadata.labels" => &meta.labels,
            "metadata.annotations" => &meta.annotations,
            _ => return None,
        };
        let value = map.get(rest.strip_suffix("']")?);
        return Some(value.cloned().unwrap_or_default());
    }
    Some(match path {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        "metadata.labels" => lines(&meta.labels),
        "metadata.annotations" => lines(&meta.annotations),
        "spec.nodeName" | "spec.host" => pod.spec.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.service_account_name.clone(),
        "status.hostIP" | "status.hostIPs" => placement.host_ip.clone(),
        "status.podIP" | "status.podIPs" => placement.pod_ip.clone(),
        _ => return None,
    })
}

/// Returns a line `key="value"` for each entry, sorted by key, without a final line break, as the kubelet formats them.
fn lines<'a>(map: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let sorted: BTreeMap<_, _> = map.into_iter().collect();
    let lines = sorted.iter().map(|(key, value)| format!("{key}={value:?}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the container or init container of this name.
pub fn container<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a Container> {
    let mut all = spec.containers.iter().chain(&spec.init_containers);
    all.find(|container| container.name == name)
}

/// Returns a container's request or limit in units of the divisor, rounded up; `None` if the resource or the divisor is
/// invalid. A missing limit defaults to that of the Pod, and then to the node's allocatable amount.
pub fn resource(
    pod: &PodSpec,
    container: &Container,
    selector: &ResourceFieldSelector,
    placement: &Placement,
) -> Option<String> {
    let (kind, name) = selector.resource.split_once('.')?;
    if !NODE_RESOURCES.contains(&name) && !name.starts_with("hugepages-") {
        return None;
    }
    let amount = |quantity: Option<&Quantity>| match quantity {
        Some(quantity) => Amount::parse(&quantity.string).ok(),
        None => Amount::parse("0").ok(),
    };
    let amount = match kind {
        "requests" => amount(container.resources.requests.get(name))?,
        "limits" => match amount(container.resources.limits.get(name))? {
            none if none.value() == 0 => match amount(limit_of_pod(pod, name))? {
                none if none.value() == 0 => amount(placement.allocatable.get(name))?,
                limit => limit,
            },
            limit => limit,
        },
        _ => return None,
    };
    let divisor = match selector.divisor.string.as_str() {
        "" | "0" => "1",
        divisor => divisor,
    };
    let divisor = Amount::parse(divisor).ok()?;
    let (amount, divisor) = match name {
        "cpu" => (amount.millis(), divisor.millis()),
        _ => (amount.value(), divisor.value()),
    };
    // In 128 bits the sum of two 64-bit numbers cannot overflow.
    let (amount, divisor) = (i128::from(amount), i128::from(divisor));
    let rounded_up = (amount + divisor - 1).checked_div(divisor)?;
    Some(rounded_up.to_string())
}

/// Returns the limit of a Pod as a whole, of CPU and memory.
fn limit_of_pod<'p>(pod: &'p PodSpec, name: &str) -> Option<&'p Quantity> {
    let own = pod
        .resources
        .as_ref()
        .filter(|_| POD_RESOURCES.contains(&name))?;
    own.limits.get(name)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::ResourceRequirements;

    use super::*;

    fn placement() -> Placement {
        let allocatable = [
            ("cpu", "2"),
            ("memory", "1Gi"),
            ("ephemeral-storage", "10Gi"),
        ];
        let allocatable =
            allocatable.map(|(name, amount)| (name.to_owned(), Quantity::new(amount)));
        Placement {
            pod_ip: "127.1.2.3".into(),
            host_ip: "10.0.0.1".into(),
            allocatable: Arc::new(allocatable.into()),
        }
    }

    #[test]
    fn fields_of_the_pod_are_found_by_their_path() {
        let mut pod = Pod::default();
        let meta = &mut pod.metadata;
        (meta.name, meta.namespace, meta.uid) = ("web".into(), "shop".into(), "5be0".into());
        meta.annotations.insert("note".into(), "a".into());
        pod.spec.node_name = "node-1".into();
        pod.spec.service_account_name = "clerk".into();
        pod.metadata.labels.insert("tier".into(), "a \"b\"".into());
        pod.metadata.labels.insert("app".into(), "shop".into());
        let placement = placement();
        let field = |path| field(&pod, &placement, path);
        for (path, value) in [
            ("metadata.name", "web"),
            ("metadata.namespace", "shop"),
            ("metadata.uid", "5be0"),
            ("metadata.annotations", "note=\"a\""),
            ("metadata.annotations['note']", "a"),
            ("spec.nodeName", "node-1"),
            ("spec.host", "node-1"),
            ("spec.serviceAccountName", "clerk"),
            ("status.podIP", "127.1.2.3"),
            ("status.podIPs", "127.1.2.3"),
            ("status.hostIP", "10.0.0.1"),
            ("status.hostIPs", "10.0.0.1"),
        ] {
            assert_eq!(field(path).as_deref(), Some(value), "{path}");
        }
        assert_eq!(field("metadata.labels['app']").as_deref(), Some("shop"));
        assert_eq!(field("metadata.labels['no']").as_deref(), Some(""));
        let all = "app=\"shop\"\ntier=\"a \\\"b\\\"\"";
        assert_eq!(field("metadata.labels").as_deref(), Some(all));
        assert_eq!(field("spec.containers"), None);
    }

    fn value_of(container: &Container, resource: &str, divisor: &str) -> Option<String> {
        let selector = ResourceFieldSelector {
            resource: resource.into(),
            divisor: Quantity::new(divisor),
            ..ResourceFieldSelector::default()
        };
        super::resource(&PodSpec::default(), container, &selector, &placement())
    }

    /// As the kubelet's `defaultPodLimitsForDownwardAPI`.
    #[test]
    fn a_container_without_a_limit_is_limited_by_its_pod_first() {
        let limits = [("cpu", "1500m"), ("ephemeral-storage", "1Gi")];
        let limits = limits.map(|(name, amount)| (name.to_owned(), Quantity::new(amount)));
        let pod = PodSpec {
            resources: Some(ResourceRequirements {
                limits: limits.into(),
                ..ResourceRequirements::default()
            }),
            ..PodSpec::default()
        };
        let value = |resource: &str, divisor: &str| {
            let selector = ResourceFieldSelector {
                resource: resource.into(),
                divisor: Quantity::new(divisor),
                ..ResourceFieldSelector::default()
            };
            let container = Container::default();
            super::resource(&pod, &container, &selector, &placement()).unwrap()
        };
        assert_eq!(value("limits.cpu", "1m"), "1500");
        assert_eq!(value("limits.memory", "1Mi"), "1024");
        assert_eq!(value("limits.ephemeral-storage", "1Gi"), "10");
        assert_eq!(value("requests.cpu", "1m"), "0");
    }

    /// Checks K15.
    #[test]
    fn a_container_without_a_limit_is_limited_by_its_node() {
        let mut container = Container::default();
        let value_or_empty = |container: &Container, resource, divisor| {
            value_of(container, resource, divisor).unwrap_or_default()
        };
        assert_eq!(value_or_empty(&container, "limits.cpu", "1m"), "2000");
        assert_eq!(value_or_empty(&container, "limits.memory", "1Mi"), "1024");
        assert_eq!(
            value_or_empty(&container, "limits.ephemeral-storage", "1Gi"),
            "10"
        );
        assert_eq!(value_or_empty(&container, "requests.cpu", ""), "0");
        let limits = &mut container.resources.limits;
        limits.insert("cpu".into(), Quantity::new("1500m"));
        assert_eq!(value_or_empty(&container, "limits.cpu", "1m"), "1500");
        assert_eq!(value_or_empty(&container, "limits.cpu", ""), "2");
        assert_eq!(value_of(&container, "limits.pods", ""), None);
        assert_eq!(value_of(&container, "cpu", ""), None);
    }

    /// Checks F1.
    #[test]
    fn no_amount_and_no_divisor_overflows() {
        let mut container = Container::default();
        let limits = &mut container.resources.limits;
        limits.insert("memory".into(), Quantity::new("9223372036854775807"));
        let most = value_of(&container, "limits.memory", "9223372036854775807");
        assert_eq!(most.as_deref(), Some("1"));
    }
}
