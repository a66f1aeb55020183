//! Settings of the cri runtime.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

/// Settings of the cri runtime.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Socket of the container runtime, which must serve version v1 of the CRI.
    pub endpoint: String,
    /// Directory of the logs of containers, as the kubelet's `podLogsDir`. The runtime writes them.
    pub pod_logs_dir: PathBuf,
    /// Directory of the seccomp profiles that containers name by `localhostProfile`, as the kubelet's.
    pub seccomp_profile_root: PathBuf,
    /// Cgroup driver of a runtime that does not tell (containerd before 2.0): cgroupfs or systemd.
    pub cgroup_driver: CgroupDriver,
    /// Interval at which containers are listed if the runtime sends no events (containerd before 1.7).
    #[serde(with = "DurationText")]
    #[schemars(with = "String")]
    pub relist_period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            endpoint: "unix:///run/containerd/containerd.sock".to_owned(),
            pod_logs_dir: "/var/log/pods".into(),
            seccomp_profile_root: "/var/lib/kubelet/seccomp".into(),
            cgroup_driver: CgroupDriver::Cgroupfs,
            relist_period: Duration::from_secs(1),
        }
    }
}

/// The way in which a runtime manages cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupDriver {
    /// By their file system.
    Cgroupfs,
    /// By systemd, as slices and scopes.
    Systemd,
}
