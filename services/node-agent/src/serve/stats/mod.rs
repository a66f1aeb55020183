//! The kubelet's pages of statistics: `/stats/summary`, and `/metrics/resource` for Prometheus.
//!
//! Both have the meter's last measurements. A value that is not measured is absent.

mod metrics;
mod routes;
mod summary;

use serde::Serialize;
use setpoint_proto::meta::Time;

pub use routes::Stats;

/// The page `/stats/summary` (upstream's `Summary`).
#[derive(Debug, PartialEq, Serialize)]
struct Summary {
    node: NodeStats,
    pods: Vec<PodStats>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeStats {
    node_name: String,
    /// The start of the machine; `null` if it is not known.
    start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fs: Option<FsStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<RuntimeStats>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuntimeStats {
    image_fs: FsStats,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PodStats {
    pod_ref: PodReference,
    start_time: Option<Time>,
    containers: Vec<ContainerStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryStats>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volume: Vec<VolumeStats>,
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    ephemeral_storage: Option<FsStats>,
}

#[derive(Debug, PartialEq, Serialize)]
struct PodReference {
    name: String,
    namespace: String,
    uid: String,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStats {
    name: String,
    start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rootfs: Option<FsStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<FsStats>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CpuStats {
    time: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_nano_cores: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_core_nano_seconds: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryStats {
    time: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_bytes: Option<u64>,
    working_set_bytes: u64,
}

#[derive(Debug, PartialEq, Serialize)]
struct VolumeStats {
    #[serde(flatten)]
    fs: FsStats,
    name: String,
}

/// The use of a file system, or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FsStats {
    time: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inodes_free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inodes_used: Option<u64>,
}
