//! Reads the usage of containers from the runtime, or from their cgroups, and the space of volumes and logs from their
//! files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::ready;
use futures::{StreamExt as _, stream};
use k8s_cri::v1::{ContainerStats, ContainerStatsFilter, ListContainerStatsRequest};
use tokio::task::spawn_blocking;
use tracing::debug;

use super::client::within;
use super::{Shared, identity, rotation};
use crate::container_cgroup::ContainerCgroup;
use crate::{Container, ContainerId, ContainerSpace, DiskUsage, Reading, Space};

/// Time within which the runtime must answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The containers whose processes the runtime is asked for at a time.
const CONCURRENCY: usize = 8;

impl Shared {
    /// Returns the usage of the running containers: that which the runtime reports, and for those about which it does
    /// not report CPU and memory, that of their cgroups.
    pub(super) async fn readings(&self) -> HashMap<ContainerId, Reading> {
        let stats = self.stats().await.into_iter();
        let reported = stats.filter_map(|(id, stats)| Some((id, reading(&stats)?)));
        let mut readings: HashMap<_, _> = reported.collect();
        let mut missing = self.table.lock().alive();
        missing.retain(|container| !readings.contains_key(&container.id));
        let counted = stream::iter(missing).map(|container| self.counted(container));
        let counted = counted.buffer_unordered(CONCURRENCY).filter_map(ready);
        readings.extend(counted.collect::<Vec<_>>().await);
        readings
    }

    /// Returns what the kernel has counted for a container; `None` if it has ended, or the runtime does not tell its
    /// process.
    async fn counted(&self, container: Container) -> Option<(ContainerId, Reading)> {
        let pid = self.init_process(&container.runtime_id).await?;
        let counted = spawn_blocking(move || ContainerCgroup::of(pid)?.reading());
        Some((container.id, counted.await.ok()??))
    }

    async fn stats(&self) -> Vec<(ContainerId, ContainerStats)> {
        let request = ListContainerStatsRequest {
            filter: Some(ContainerStatsFilter {
                label_selector: identity::of_node(&self.node),
                ..ContainerStatsFilter::default()
            }),
        };
        let answer = within(
            TIMEOUT,
            self.service.runtime().list_container_stats(request),
        )
        .await;
        let stats = answer.map(|answer| answer.stats).unwrap_or_else(|status| {
            debug!(%status, "the usage of containers is unknown");
            Vec::new()
        });
        let known = stats.into_iter().filter_map(|stats| {
            let attributes = stats.attributes.as_ref()?;
            let config = identity::container(&attributes.annotations)?;
            Some((config.id, stats))
        });
        known.collect()
    }

    /// Returns what containers and volumes of these Pods hold of the disks.
    pub(super) async fn disk_usage(this: &Arc<Self>, pods: HashSet<String>) -> DiskUsage {
        let stats = this.stats().await.into_iter();
        let layers: HashMap<_, _> = stats
            .filter_map(|(id, stats)| Some((id, stats.writable_layer?.used_bytes?.value)))
            .collect();
        let this = Arc::clone(this);
        let measured = spawn_blocking(move || this.measure(&pods, &layers));
        measured.await.unwrap_or_default()
    }

    fn measure(&self, pods: &HashSet<String>, layers: &HashMap<ContainerId, u64>) -> DiskUsage {
        let containers = self.table.lock().containers().into_iter();
        let ids = containers.map(|container| container.id);
        let ids = ids.filter(|id| pods.contains(&id.uid));
        let containers: HashMap<_, _> = ids
            .map(|id| {
                let space = ContainerSpace {
                    layer: layers.get(&id).copied(),
                    log: self.log_space(&id),
                };
                (id, space)
            })
            .collect();
        let known: HashSet<_> = self.known_uids(pods);
        let volumes = known.into_iter().map(|uid| {
            let folders = self.files.volumes.folders(&uid).into_iter();
            let sizes = folders.filter_map(|(name, folder)| Some((name, Space::of(&folder).ok()?)));
            (uid, sizes.collect())
        });
        DiskUsage {
            volumes: volumes.collect(),
            containers,
        }
    }

    fn known_uids(&self, pods: &HashSet<String>) -> HashSet<String> {
        let configs = self.table.lock().configs().into_iter();
        let uids = configs.map(|config| config.uid);
        uids.filter(|uid| pods.contains(uid)).collect()
    }

    /// Returns the space of a container's log, with the older files that it was rotated to.
    fn log_space(&self, id: &ContainerId) -> Option<Space> {
        let sandbox = self.sandbox_config(&id.uid)?;
        let folder = self.files.logs_of(&sandbox).join(&id.name);
        let files = rotation::files(&folder, id.attempt).ok()?;
        // A file may be removed meanwhile.
        let spaces = files.iter().filter_map(|file| Space::of_file(file).ok());
        Some(spaces.fold(Space::default(), Space::plus))
    }
}

/// Returns the usage that the runtime reports. Memory of the page cache that can be reclaimed at once is not counted.
fn reading(stats: &ContainerStats) -> Option<Reading> {
    let cpu = stats.cpu.as_ref()?.usage_core_nano_seconds?.value;
    let memory = stats.memory.as_ref()?.working_set_bytes?.value;
    Some(Reading {
        cpu: Duration::from_nanos(cpu),
        memory,
    })
}
