//! Reads the CPU time and the memory of containers from the engine.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerStatsResponse;
use bollard::query_parameters::StatsOptionsBuilder;
use futures::StreamExt as _;
use tokio::time::timeout;

use super::Shared;
use crate::{Container, ContainerId, Reading};

/// The maximum number of concurrent requests.
const CONCURRENCY: usize = 8;
/// The time within which the engine must answer.
const TIMEOUT: Duration = Duration::from_secs(5);

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

/// Returns the usage that a response reports. Memory of the page cache that can be reclaimed at once is not counted, as
/// in `docker stats`.
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
