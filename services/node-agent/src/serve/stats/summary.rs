//! Composes the summary from what was measured.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::statvfs::statvfs;
use setpoint_proto::meta::Time;
use setpoint_proto::setpoint::ContainerUsage;
use setpoint_runtime::{Container, Space, State};

use super::{
    ContainerStats, CpuStats, FsStats, MemoryStats, NodeStats, PodReference, PodStats,
    RuntimeStats, Summary, VolumeStats,
};
use crate::node::eviction::{FileSystems, Observation, machine_memory};
use crate::node::usage::{Held, Measured, PodReport, Report, boot_time};

/// The measurements of the machine of a node.
#[derive(Debug, Default)]
pub struct Host {
    /// The start of the machine.
    pub started: Option<Timestamp>,
    /// Its memory.
    pub memory: Option<Observation>,
    /// The file system of the agent's state.
    pub fs: Option<FsStats>,
    /// The file system of the engine's images and containers.
    pub image_fs: Option<FsStats>,
}

impl Host {
    /// Observes the machine of a node; nothing of a simulated node.
    pub fn observe(disks: Option<&FileSystems>) -> Self {
        let Some(disks) = disks else {
            return Self::default();
        };
        Self {
            started: boot_time(),
            memory: machine_memory(),
            fs: file_system(&disks.node),
            image_fs: disks.images.as_deref().and_then(file_system),
        }
    }
}

impl Summary {
    /// Returns the summary of CPU and memory of a node.
    pub fn of(node: &str, host: &Host, report: &Report) -> Self {
        let time = Time::from(report.time);
        let cpu = report.cpu.map(|cpu| CpuStats {
            time,
            usage_nano_cores: cpu.nanocores,
            usage_core_nano_seconds: Some(nanoseconds(cpu.total)),
        });
        let memory = host.memory.map(|memory| MemoryStats {
            time: Timestamp::now().into(),
            available_bytes: Some(unsigned(memory.available)),
            working_set_bytes: unsigned(memory.capacity.saturating_sub(memory.available)),
        });
        Self {
            node: NodeStats {
                node_name: node.to_owned(),
                start_time: host.started.map(Time::from),
                cpu,
                memory,
                ..NodeStats::default()
            },
            pods: report.pods.iter().map(|pod| pod_stats(pod, time)).collect(),
        }
    }

    /// Adds the use of disks.
    pub fn with_disks(mut self, host: &Host, report: &Report, measured: &Measured) -> Self {
        self.node.fs = host.fs;
        self.node.runtime = host.image_fs.map(|image_fs| RuntimeStats {
            // The space of the images alone is not measured.
            image_fs: FsStats {
                used_bytes: None,
                inodes_used: None,
                ..image_fs
            },
        });
        // An engine has layers and logs on the same disk.
        let disk = host.image_fs.or(host.fs).unwrap_or_default();
        for (stats, pod) in self.pods.iter_mut().zip(&report.pods) {
            if let Some((time, held)) = measured.get(&pod.pod.metadata.uid) {
                stats.add(
                    pod,
                    held,
                    FsStats {
                        time: (*time).into(),
                        ..disk
                    },
                );
            }
        }
        self
    }
}

impl PodStats {
    fn add(&mut self, pod: &PodReport, held: &Held, disk: FsStats) {
        for container in &mut self.containers {
            let Some(space) = held.containers.get(&container.name) else {
                continue;
            };
            container.rootfs = space.layer.map(|bytes| used(disk, bytes, None));
            container.logs = space.log.map(|log| used(disk, log.bytes, Some(log.inodes)));
        }
        let part = |space: &Space| {
            let of_volume = FsStats {
                time: disk.time,
                ..FsStats::default()
            };
            used(of_volume, space.bytes, Some(space.inodes))
        };
        let volumes = held.volumes.iter().map(|(name, space)| VolumeStats {
            name: name.clone(),
            fs: part(space),
        });
        self.volume = volumes.collect();
        let layers = held.containers.values().any(|space| space.layer.is_some());
        let total = held.total(&pod.pod.spec);
        let inodes = (!layers).then_some(total.inodes);
        self.ephemeral_storage = Some(used(disk, total.bytes, inodes));
    }
}

/// Returns the part of a file system that something uses.
fn used(disk: FsStats, bytes: u64, inodes: Option<u64>) -> FsStats {
    FsStats {
        used_bytes: Some(bytes),
        inodes_used: inodes,
        ..disk
    }
}

fn pod_stats(report: &PodReport, time: Time) -> PodStats {
    let meta = &report.pod.metadata;
    let containers = report.containers.iter();
    let containers: Vec<_> = containers
        .map(|container| container_stats(report, container, time))
        .collect();
    PodStats {
        pod_ref: PodReference {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
        },
        start_time: report.pod.status.start_time,
        cpu: sum_of_cpu(&containers, time),
        memory: sum_of_memory(&containers, time),
        containers,
        volume: Vec::new(),
        ephemeral_storage: None,
    }
}

fn container_stats(report: &PodReport, container: &Container, time: Time) -> ContainerStats {
    let since = match container.state {
        State::Running { since, .. } => Some(since),
        _ => None,
    };
    let usage = report.usage.get(&container.id);
    let total = report.cpu.get(&container.id).copied();
    let cpu = |usage: &ContainerUsage| CpuStats {
        time,
        usage_nano_cores: Some(usage.cpu_nanocores),
        usage_core_nano_seconds: total.map(nanoseconds),
    };
    let memory = |usage: &ContainerUsage| MemoryStats {
        time,
        available_bytes: None,
        working_set_bytes: usage.memory_bytes,
    };
    ContainerStats {
        name: container.id.name.clone(),
        start_time: since.map(Time::from),
        cpu: usage.map(cpu),
        memory: usage.map(memory),
        rootfs: None,
        logs: None,
    }
}

/// Returns the sum over all containers; `None` if one has not been read.
fn sum_of_cpu(containers: &[ContainerStats], time: Time) -> Option<CpuStats> {
    let all: Option<Vec<_>> = containers.iter().map(|one| one.cpu.as_ref()).collect();
    let all = all?;
    let sum = |of: fn(&CpuStats) -> Option<u64>| {
        let mut amounts = all.iter().map(|cpu| of(cpu));
        amounts.try_fold(0_u64, |sum, amount| Some(sum.saturating_add(amount?)))
    };
    Some(CpuStats {
        time,
        usage_nano_cores: sum(|cpu| cpu.usage_nano_cores),
        usage_core_nano_seconds: sum(|cpu| cpu.usage_core_nano_seconds),
    })
}

fn sum_of_memory(containers: &[ContainerStats], time: Time) -> Option<MemoryStats> {
    let mut all = containers.iter().map(|one| one.memory.as_ref());
    let sum = all.try_fold(0_u64, |sum, memory| {
        Some(sum.saturating_add(memory?.working_set_bytes))
    });
    Some(MemoryStats {
        time,
        available_bytes: None,
        working_set_bytes: sum?,
    })
}

/// Returns the use of the file system of a path.
fn file_system(path: &Path) -> Option<FsStats> {
    let stat = statvfs(path).ok()?;
    let bytes = |blocks: u64| Some(blocks.saturating_mul(stat.fragment_size()));
    // Some file systems have no fixed number of inodes.
    let inodes = (stat.files() > 0).then(|| (stat.files(), stat.files_free()));
    Some(FsStats {
        time: Timestamp::now().into(),
        available_bytes: bytes(stat.blocks_available()),
        capacity_bytes: bytes(stat.blocks()),
        used_bytes: bytes(stat.blocks().saturating_sub(stat.blocks_free())),
        inodes_free: inodes.map(|(_, free)| free),
        inodes: inodes.map(|(all, _)| all),
        inodes_used: inodes.map(|(all, free)| all.saturating_sub(free)),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn unsigned(amount: i64) -> u64 {
    u64::try_from(amount).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde_json::json;
    use setpoint_proto::core::Pod;

    use super::*;
    use crate::node::usage::MachineCpu;
    use setpoint_runtime::{ContainerConfig, ContainerId, ContainerSpace};

    fn container(name: &str) -> Container {
        let config = ContainerConfig {
            id: ContainerId {
                uid: "u".into(),
                name: name.into(),
                attempt: 0,
            },
            ..ContainerConfig::default()
        };
        let since = Timestamp::from_second(5).unwrap();
        Container {
            state: State::Running {
                since,
                stopping: None,
            },
            ..Container::starting(&config)
        }
    }

    /// Returns a report of a Pod with two containers, the first `read` of which have been read.
    fn report(read: usize) -> Report {
        let containers = vec![container("web"), container("log")];
        let ids: Vec<_> = containers.iter().map(|one| one.id.clone()).collect();
        let usage = |id: &ContainerId| ContainerUsage {
            name: id.name.clone(),
            cpu_nanocores: 7,
            memory_bytes: 4096,
        };
        let mut pod = Pod::default();
        pod.metadata.name = "p".into();
        pod.metadata.namespace = "a".into();
        pod.metadata.uid = "u".into();
        pod.status.start_time = Some(Timestamp::from_second(3).unwrap().into());
        let seconds = Duration::from_secs;
        Report {
            time: Timestamp::from_second(9).unwrap(),
            cpu: Some(MachineCpu {
                total: seconds(2),
                nanocores: Some(5),
            }),
            pods: vec![PodReport {
                pod,
                usage: ids[..read]
                    .iter()
                    .map(|id| (id.clone(), usage(id)))
                    .collect(),
                cpu: ids[..read]
                    .iter()
                    .map(|id| (id.clone(), seconds(1)))
                    .collect(),
                containers,
            }],
        }
    }

    #[test]
    fn cpu_and_memory_have_the_form_of_the_kubelet() {
        let summary = Summary::of("node", &Host::default(), &report(2));
        let at = "1970-01-01T00:00:09Z";
        let container = |name: &str| {
            json!({
                "name": name, "startTime": "1970-01-01T00:00:05Z",
                "cpu": {"time": at, "usageNanoCores": 7, "usageCoreNanoSeconds": 1_000_000_000},
                "memory": {"time": at, "workingSetBytes": 4096},
            })
        };
        let expected = json!({
            "node": {
                "nodeName": "node", "startTime": null,
                "cpu": {"time": at, "usageNanoCores": 5, "usageCoreNanoSeconds": 2_000_000_000},
            },
            "pods": [{
                "podRef": {"name": "p", "namespace": "a", "uid": "u"},
                "startTime": "1970-01-01T00:00:03Z",
                "containers": [container("web"), container("log")],
                "cpu": {"time": at, "usageNanoCores": 14, "usageCoreNanoSeconds": 2_000_000_000},
                "memory": {"time": at, "workingSetBytes": 8192},
            }],
        });
        assert_eq!(serde_json::to_value(summary).unwrap(), expected);
    }

    #[test]
    fn a_pod_has_no_sum_until_all_of_its_containers_have_been_read() {
        let summary = Summary::of("node", &Host::default(), &report(1));
        let pod = &summary.pods[0];
        assert!(pod.cpu.is_none() && pod.memory.is_none());
        assert!(pod.containers[0].cpu.is_some() && pod.containers[1].cpu.is_none());
    }

    #[test]
    fn disks_show_what_was_measured() {
        let report = report(2);
        let space = |bytes| Space { bytes, inodes: 2 };
        let log = ContainerSpace {
            layer: None,
            log: Some(space(100)),
        };
        let both = ContainerSpace {
            layer: Some(20),
            ..log
        };
        let disk = FsStats {
            capacity_bytes: Some(1000),
            ..FsStats::default()
        };
        let host = Host {
            image_fs: Some(disk),
            ..Host::default()
        };
        let held = |containers: BTreeMap<String, ContainerSpace>| Held {
            containers,
            volumes: [("cache".to_owned(), space(7))].into(),
            ..Held::default()
        };
        let stats = |held: Held| {
            let measured = HashMap::from([("u".to_owned(), (Timestamp::UNIX_EPOCH, held))]);
            let summary = Summary::of("node", &host, &report);
            let mut summary = summary.with_disks(&host, &report, &measured);
            summary.pods.remove(0)
        };
        let pod = stats(held([("web".to_owned(), both)].into()));
        let web = &pod.containers[0];
        let time = Time::from(Timestamp::UNIX_EPOCH);
        let part = |bytes, inodes| used(FsStats { time, ..disk }, bytes, inodes);
        assert_eq!(web.rootfs, Some(part(20, None)));
        assert_eq!(web.logs, Some(part(100, Some(2))));
        assert_eq!(pod.containers[1].rootfs, None);
        // The volume is none of the spec's, and therefore not known to be on a disk.
        assert_eq!(pod.ephemeral_storage, Some(part(120, None)));
        let volume = serde_json::to_value(&pod.volume).unwrap();
        let expected = json!([{"time": "1970-01-01T00:00:00Z", "usedBytes": 7, "inodesUsed": 2, "name": "cache"}]);
        assert_eq!(volume, expected);
        let pod = stats(held([("web".to_owned(), log)].into()));
        assert_eq!(pod.ephemeral_storage, Some(part(100, Some(2))));
    }

    #[test]
    fn this_machine_has_a_file_system_and_memory() {
        let disks = FileSystems {
            node: ".".into(),
            images: None,
        };
        let host = Host::observe(Some(&disks));
        let fs = host.fs.unwrap();
        let (all, used, left) = (fs.capacity_bytes, fs.used_bytes, fs.available_bytes);
        assert!(used.unwrap() + left.unwrap() <= all.unwrap());
        assert!(host.memory.is_some() && host.started.is_some());
        assert!(Host::observe(None).fs.is_none());
    }
}
