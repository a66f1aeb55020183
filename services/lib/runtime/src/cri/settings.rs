//! Settings of the cri runtime.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;

use crate::image_access::{Policy, Verification};

/// The longest name of a link.
const LINK_NAME_MAX: usize = 15;

/// Settings of the cri runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Network of Pods: cni, by what the administrator has configured for the container runtime; or routes, by a
    /// configuration of the CNI that is written from the range of the node, with the plug-ins bridge, host-local,
    /// portmap and firewall. The proxy keeps routes between nodes then (its setting routed_pod_ranges).
    pub network: Network,
    /// Directory of the configuration of the CNI that the container runtime reads, for the network routes.
    pub cni_conf_dir: PathBuf,
    /// Name of the bridge that Pods are connected to, for the network routes.
    pub bridge: String,
    /// Paths of the machine that Pods may mount as hostPath volumes, with all below them. Where not all are, a Pod that
    /// may write to one can make a link in it, which is not followed if it leads out.
    pub host_paths: Vec<String>,
    /// Images that are present and that a Pod may use only with credentials that the registry accepts, as the kubelet's
    /// setting: NeverVerify, NeverVerifyPreloadedImages (those that this agent has pulled with credentials),
    /// NeverVerifyAllowlistedImages or AlwaysVerify.
    pub image_pull_credentials_verification_policy: Verification,
    /// Images that every Pod may use, with the policy NeverVerifyAllowlistedImages: names without tags, or with `/*` at
    /// their end.
    pub preloaded_images_verification_allowlist: Vec<String>,
    /// Interval at which containers are listed if the runtime sends no events (containerd before 1.7), and until the
    /// first event.
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
            network: Network::Cni,
            cni_conf_dir: "/etc/cni/net.d".into(),
            bridge: "setpoint-pods".to_owned(),
            host_paths: vec!["/".to_owned()],
            image_pull_credentials_verification_policy: Verification::default(),
            preloaded_images_verification_allowlist: Vec::new(),
            relist_period: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// Returns the policy on the use of images that are present; the default one if it is invalid.
    pub(super) fn image_policy(&self) -> Policy {
        self.checked_policy().unwrap_or_default()
    }

    fn checked_policy(&self) -> Result<Policy, &'static str> {
        let list = self.preloaded_images_verification_allowlist.clone();
        Policy::new(self.image_pull_credentials_verification_policy, list)
    }

    /// Checks what no type says.
    ///
    /// # Errors
    /// The first setting that is wrong, and why.
    pub fn validate(&self) -> Result<(), String> {
        self.checked_policy()
            .map_err(|problem| format!("cri.preloaded-images-verification-allowlist: {problem}"))?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_link = (1..=LINK_NAME_MAX).contains(&self.bridge.len());
        let checks = [
            (
                !self.relist_period.is_zero(),
                "cri.relist-period: must be longer than zero",
            ),
            (
                self.pod_logs_dir.is_absolute(),
                "cri.pod-logs-dir: must be absolute",
            ),
            (
                self.cni_conf_dir.is_absolute(),
                "cri.cni-conf-dir: must be absolute",
            ),
            (
                is_link && self.bridge.bytes().all(is_plain),
                "cri.bridge: must be 1 to 15 letters, digits, - and _",
            ),
        ];
        let broken = checks.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, problem)| Err(problem.to_owned()))
    }
}

/// The network of Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The network that the administrator has configured.
    Cni,
    /// A bridge with the range of the node, and routes to those of other nodes.
    Routes,
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
