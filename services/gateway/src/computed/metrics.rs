//! Resource usage of nodes and Pods, as metrics-server serves it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use setpoint_model::Key;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::meta::{ObjectMeta, Quantity};
use setpoint_proto::metrics::{ContainerMetrics, NodeMetrics, PodMetrics};
use setpoint_proto::setpoint::{ContainerUsage, PodUsage};
use setpoint_proto::{ApiError, Resource};
use setpoint_store::cache::{AtLeast, Filter};

use super::{Computed, Computing};
use crate::registry::Registry;

impl Computed for PodMetrics {
    fn read<'a>(registry: &'a Registry, scope: &'a Key) -> Computing<'a, Self> {
        let read = async move {
            let usage = usage_of_pods(registry).await?;
            let pods: BTreeMap<_, _> = objects::<Pod>(registry, &scope.namespace).await?;
            let metrics = usage.iter().filter_map(|usage| {
                let pod = pods.get(&Key::new(&usage.namespace, &usage.name))?;
                (pod.uid == usage.uid).then(|| of_pod(pod, usage))
            });
            Ok(metrics.collect())
        };
        read.boxed()
    }
}

impl Computed for NodeMetrics {
    /// The usage of a node is that of its Pods: several nodes may share a machine.
    fn read<'a>(registry: &'a Registry, _: &'a Key) -> Computing<'a, Self> {
        let read = async move {
            let usage = usage_of_pods(registry).await?;
            let mut of_nodes: BTreeMap<&str, Vec<&PodUsage>> = BTreeMap::new();
            for pod in usage.iter() {
                of_nodes.entry(&pod.node).or_default().push(pod);
            }
            let nodes = objects::<Node>(registry, "").await?.into_values();
            let metrics = nodes.map(|node| {
                let pods = of_nodes.remove(node.name.as_str()).unwrap_or_default();
                of_node(&node, &pods)
            });
            Ok(metrics.collect())
        };
        read.boxed()
    }
}

/// Returns the usage of the running Pods on all nodes.
async fn usage_of_pods(registry: &Registry) -> Result<Arc<Vec<PodUsage>>, ApiError> {
    let (cache, policy) = (registry.cache(), registry.dial_policy());
    registry.usage().of_pods(cache, policy).await
}

/// Returns the metadata of all objects of a kind in a namespace, or in all if it is empty.
async fn objects<T: Resource>(
    registry: &Registry,
    namespace: &str,
) -> Result<BTreeMap<Key, ObjectMeta>, ApiError> {
    let filter = Filter::all(setpoint_codec::kind_of::<T>(), namespace);
    let snapshot = registry.cache().list(&filter, AtLeast::Newest).await?;
    let metadata = snapshot.items.into_iter().map(|item| {
        let object = crate::registry::readable(item.decode())?;
        Ok((item.key.clone(), object.meta().clone()))
    });
    metadata.collect()
}

fn of_pod(pod: &ObjectMeta, usage: &PodUsage) -> PodMetrics {
    let containers = usage.containers.iter().map(|container| ContainerMetrics {
        name: container.name.clone(),
        usage: quantities([container]),
    });
    PodMetrics {
        metadata: metadata(pod),
        timestamp: time(usage.time_ns).into(),
        window: window(usage).into(),
        containers: containers.collect(),
    }
}

fn of_node(node: &ObjectMeta, pods: &[&PodUsage]) -> NodeMetrics {
    let latest = pods.iter().max_by_key(|pod| pod.time_ns);
    NodeMetrics {
        metadata: metadata(node),
        timestamp: latest
            .map_or_else(Timestamp::now, |pod| time(pod.time_ns))
            .into(),
        window: latest.map_or(Duration::ZERO, |pod| window(pod)).into(),
        usage: quantities(pods.iter().flat_map(|pod| &pod.containers)),
    }
}

/// Returns the metadata of metrics: the name and labels of the object that they are about.
fn metadata(of: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: of.name.clone(),
        namespace: of.namespace.clone(),
        labels: of.labels.clone(),
        creation_timestamp: Timestamp::now().into(),
        ..ObjectMeta::default()
    }
}

/// Returns the sums of CPU and memory, in the units of metrics-server.
fn quantities<'u>(
    usage: impl IntoIterator<Item = &'u ContainerUsage>,
) -> BTreeMap<String, Quantity> {
    let (mut cpu, mut memory) = (0_u64, 0_u64);
    for container in usage {
        cpu = cpu.saturating_add(container.cpu_nanocores);
        memory = memory.saturating_add(container.memory_bytes);
    }
    let quantity = |name: &str, amount: String| {
        let canonical = Amount::parse(&amount).map(Amount::canonical);
        (name.to_owned(), Quantity::new(canonical.unwrap_or(amount)))
    };
    [
        quantity("cpu", format!("{cpu}n")),
        quantity("memory", format!("{}Ki", memory / 1024)),
    ]
    .into()
}

fn time(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn window(usage: &PodUsage) -> Duration {
    Duration::from_nanos(u64::try_from(usage.window_ns).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu_nanocores: u64, memory_bytes: u64) -> PodUsage {
        let container = |name: &str| ContainerUsage {
            name: name.into(),
            cpu_nanocores,
            memory_bytes,
        };
        PodUsage {
            time_ns: 1_000_000_000,
            window_ns: 10_000_000_000,
            containers: vec![container("a"), container("b")],
            ..PodUsage::default()
        }
    }

    fn texts(usage: &BTreeMap<String, Quantity>) -> (&str, &str) {
        (&usage["cpu"].string, &usage["memory"].string)
    }

    #[test]
    fn containers_have_their_usage_and_nodes_the_sum_of_their_pods() {
        let (pod, other) = (usage(1_500_000, 2 << 20), usage(500, 1024));
        let metrics = of_pod(&ObjectMeta::default(), &pod);
        assert_eq!(texts(&metrics.containers[1].usage), ("1500u", "2Mi"));
        assert_eq!(metrics.window.to_string(), "10s");
        let node = of_node(&ObjectMeta::default(), &[&pod, &other]);
        assert_eq!(texts(&node.usage), ("3001u", "4098Ki"));
        assert_eq!(node.timestamp.to_string(), "1970-01-01T00:00:01Z");
    }
}
