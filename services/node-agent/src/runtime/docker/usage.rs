//! Reads the resource usage of containers from the engine.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerStatsResponse, ContainerSummary};
use bollard::query_parameters::{ListContainersOptionsBuilder, StatsOptionsBuilder};
use futures::StreamExt as _;
use tokio::time::timeout;
use tracing::warn;

use super::Shared;
use super::identity::{CLUSTER, Identity, NODE, filter};
use crate::runtime::{Container, ContainerId, DiskUsage, Reading};

/// The maximum number of concurrent requests.
const CONCURRENCY: usize = 8;
/// The time within which the engine must answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The same if it walks through the files of containers.
const SIZE_TIMEOUT: Duration = Duration::from_secs(30);

impl Shared {
    /// Returns the usage of the running containers, except those that the engine reports nothing about.
    pub(super) async fn readings(&self) -> HashMap<ContainerId, Reading> {
        let alive = self.table.lock().alive();
        let readings = alive.into_iter().map(|container| self.reading(container));
        let readings = futures::stream::iter(readings).buffer_unordered(CONCURRENCY);
        readings.filter_map(futures::future::ready).collect().await
    }

    pub(super) async fn reading(&self, container: Container) -> Option<(ContainerId, Reading)> {
        let once = StatsOptionsBuilder::default().stream(false).one_shot(true);
        let client = &self.engine.client;
        let mut stats = client.stats(&container.runtime_id, Some(once.build()));
        let stats = timeout(TIMEOUT, stats.next()).await.ok()??.ok()?;
        Some((container.id, of_stats(&stats)?))
    }
}

impl Shared {
    /// Returns the sizes of the writable layers of containers; none if the engine does not answer in time. Those of
    /// volumes are not asked for, because the engine sums them up for all of its users.
    pub(super) async fn disk_usage(&self) -> DiskUsage {
        let labels = [(CLUSTER, self.engine.cluster.as_str()), (NODE, &self.node)];
        let wanted = ListContainersOptionsBuilder::default()
            .all(true)
            .size(true)
            .filters(&filter(&labels));
        let list = self.engine.client.list_containers(Some(wanted.build()));
        match timeout(SIZE_TIMEOUT, list).await {
            Ok(Ok(list)) => of_list(list),
            _ => {
                warn!("the container engine does not report the sizes of containers");
                DiskUsage::default()
            }
        }
    }
}

fn of_list(list: Vec<ContainerSummary>) -> DiskUsage {
    let size = |one: ContainerSummary| {
        let identity = Identity::parse(&one.labels?)?;
        let bytes = u64::try_from(one.size_rw.unwrap_or_default()).unwrap_or_default();
        (!identity.is_pause()).then_some((identity.id, bytes))
    };
    DiskUsage {
        containers: list.into_iter().filter_map(size).collect(),
        volumes: HashMap::new(),
    }
}

/// Returns the usage that a response reports. Memory of the page cache that can be reclaimed at once is not counted, as in
/// `docker stats`.
fn of_stats(stats: &ContainerStatsResponse) -> Option<Reading> {
    let cpu = stats.cpu_stats.as_ref()?.cpu_usage.as_ref()?.total_usage?;
    let memory = stats.memory_stats.as_ref()?;
    let counters = memory.stats.as_ref();
    // The names of cgroup v2 and v1.
    let names = ["inactive_file", "total_inactive_file"].into_iter();
    let inactive = counters.and_then(|counters| names.filter_map(|name| counters.get(name)).next());
    let inactive = inactive.copied().unwrap_or_default();
    Some(Reading {
        cpu: Duration::from_nanos(cpu),
        memory: memory.usage?.saturating_sub(inactive),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reclaimable_memory_is_not_counted() {
        let stats = |counters| {
            let stats = json!({
                "cpu_stats": { "cpu_usage": { "total_usage": 1_500_000_000 } },
                "memory_stats": { "usage": 4096, "stats": counters },
            });
            of_stats(&serde_json::from_value(stats).unwrap()).unwrap()
        };
        let reading = stats(json!({ "inactive_file": 96 }));
        assert_eq!(reading.cpu, Duration::from_millis(1500));
        assert_eq!(reading.memory, 4000);
        assert_eq!(stats(json!({})).memory, 4096);
        assert_eq!(of_stats(&ContainerStatsResponse::default()), None);
    }
}
