//! Builds the requests for sandboxes and containers. Pure.

#![warn(clippy::arithmetic_side_effects)]

use k8s_cri::v1::security_profile::ProfileType;
use k8s_cri::v1::{
    Capability, ContainerMetadata, Int64Value, KeyValue, LinuxContainerConfig,
    LinuxContainerResources, LinuxContainerSecurityContext, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, Mount, NamespaceMode, NamespaceOption, PodSandboxConfig,
    PodSandboxMetadata, PortMapping, Protocol, SecurityProfile,
};

use super::identity::Pairs;
use crate::{ContainerConfig, HostPort, Limits, Processes, SandboxConfig, Security};

/// The period of CPU quotas, and the least quota, in microseconds (the kubelet's).
const PERIOD: i64 = 100_000;
const MIN_QUOTA: i64 = 1000;
/// The range of CPU shares.
const MIN_SHARES: i64 = 2;
const MAX_SHARES: i64 = 262_144;
/// Maximum length of a host name in Linux.
const MAX_HOSTNAME: usize = 63;

/// The paths that containers do not see, as the kubelet's for `procMount: Default`.
const MASKED_PATHS: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
/// The paths that containers may only read, as the kubelet's for `procMount: Default`.
const READONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// The data that the configuration of a sandbox takes besides that of its Pod.
pub struct Surroundings {
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The labels.
    pub labels: Pairs,
    /// The annotations.
    pub annotations: Pairs,
    /// The directory of the logs of its containers.
    pub log_directory: String,
    /// The parent of its cgroups; empty for the runtime's default.
    pub cgroup_parent: String,
}

/// Returns the configuration of a sandbox.
pub fn sandbox(config: &SandboxConfig, surroundings: Surroundings) -> PodSandboxConfig {
    let shared = config.host_network;
    let resources = config.resources.map(|pod| resources(pod.all, None));
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: config.name.clone(),
            uid: config.uid.clone(),
            namespace: config.namespace.clone(),
            attempt: surroundings.attempt,
        }),
        // A Pod in the network of its node has the name of the node.
        hostname: if shared {
            String::new()
        } else {
            hostname(config)
        },
        log_directory: surroundings.log_directory,
        port_mappings: config.host_ports.iter().map(port_mapping).collect(),
        labels: surroundings.labels,
        annotations: surroundings.annotations,
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: surroundings.cgroup_parent,
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces(shared)),
                seccomp: Some(profile()),
                ..LinuxSandboxSecurityContext::default()
            }),
            sysctls: config.sysctls.clone().into_iter().collect(),
            resources,
            ..LinuxPodSandboxConfig::default()
        }),
        ..PodSandboxConfig::default()
    }
}

/// Returns the profile for seccomp: the runtime's own for every container, which is stricter than none.
fn profile() -> SecurityProfile {
    SecurityProfile {
        profile_type: ProfileType::RuntimeDefault.into(),
        localhost_ref: String::new(),
    }
}

fn namespaces(host_network: bool) -> NamespaceOption {
    let network = match host_network {
        true => NamespaceMode::Node,
        false => NamespaceMode::Pod,
    };
    NamespaceOption {
        network: network.into(),
        pid: NamespaceMode::Container.into(),
        ipc: NamespaceMode::Pod.into(),
        ..NamespaceOption::default()
    }
}

fn port_mapping(port: &HostPort) -> PortMapping {
    let protocol = match port.protocol.as_str() {
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    PortMapping {
        protocol: protocol.into(),
        container_port: port.container_port.into(),
        host_port: port.port.into(),
        host_ip: port.ip.map_or_else(String::new, |ip| ip.to_string()),
    }
}

/// The data that the configuration of a container takes besides its spec.
pub struct Parts {
    /// The reference of its image, as the runtime knows it.
    pub image: k8s_cri::v1::ImageSpec,
    /// The user of its image, if it must be named.
    pub image_user: Option<i64>,
    /// The labels.
    pub labels: Pairs,
    /// The annotations.
    pub annotations: Pairs,
    /// The mounts.
    pub mounts: Vec<Mount>,
    /// The path of its log in the directory of its sandbox.
    pub log_path: String,
    /// The runtime's id of the container whose processes it shares.
    pub target: String,
    /// Whether its Pod is in the network of its node.
    pub host_network: bool,
}

/// Returns the configuration of a container.
pub fn container(config: &ContainerConfig, parts: Parts) -> k8s_cri::v1::ContainerConfig {
    let each = config.pod.map_or(Limits::default(), |pod| pod.each);
    let limits = Limits::of(&config.resources).or(each);
    let env = config.env.iter().map(|(key, value)| KeyValue {
        key: key.clone(),
        value: value.clone(),
    });
    let context = security(
        &config.security,
        parts.image_user,
        NamespaceOption {
            pid: pid_mode(&config.processes).into(),
            target_id: parts.target,
            ..namespaces(parts.host_network)
        },
    );
    k8s_cri::v1::ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: config.id.name.clone(),
            attempt: config.id.attempt,
        }),
        image: Some(parts.image),
        command: config.command.clone(),
        args: config.args.clone(),
        working_dir: config.working_dir.clone(),
        envs: env.collect(),
        mounts: parts.mounts,
        labels: parts.labels,
        annotations: parts.annotations,
        log_path: parts.log_path,
        stdin: config.console.stdin,
        stdin_once: config.console.stdin && config.console.stdin_once,
        tty: config.console.tty,
        linux: Some(LinuxContainerConfig {
            resources: Some(resources(limits, config.oom_score_adj)),
            security_context: Some(context),
        }),
        ..k8s_cri::v1::ContainerConfig::default()
    }
}

const fn pid_mode(processes: &Processes) -> NamespaceMode {
    match processes {
        Processes::Own => NamespaceMode::Container,
        Processes::OfPod => NamespaceMode::Pod,
        Processes::Of(_) => NamespaceMode::Target,
    }
}

fn security(
    security: &Security,
    image_user: Option<i64>,
    namespaces: NamespaceOption,
) -> LinuxContainerSecurityContext {
    let owned = |paths: &[&str]| paths.iter().map(ToString::to_string).collect();
    let id = |value: Option<i64>| value.map(|value| Int64Value { value });
    LinuxContainerSecurityContext {
        capabilities: Some(Capability {
            add_capabilities: security.add.clone(),
            drop_capabilities: security.drop.clone(),
            ..Capability::default()
        }),
        namespace_options: Some(namespaces),
        // A group is only accepted beside a user.
        run_as_user: id(security.run_as_user.or(image_user)),
        run_as_group: id(security.run_as_group),
        readonly_rootfs: security.read_only,
        supplemental_groups: security.supplemental_groups.clone(),
        no_new_privs: security.no_new_privileges,
        masked_paths: owned(&MASKED_PATHS),
        readonly_paths: owned(&READONLY_PATHS),
        seccomp: Some(profile()),
        ..LinuxContainerSecurityContext::default()
    }
}

/// Returns the limits of a container or a Pod.
pub fn resources(limits: Limits, oom_score_adj: Option<i64>) -> LinuxContainerResources {
    let shares = limits.millicpu_share.saturating_mul(1024) / 1000;
    let quota = limits.millicpu.saturating_mul(PERIOD) / 1000;
    LinuxContainerResources {
        cpu_period: PERIOD,
        cpu_quota: match limits.millicpu {
            ..=0 => -1,
            _ => quota.max(MIN_QUOTA),
        },
        cpu_shares: shares.clamp(MIN_SHARES, MAX_SHARES),
        memory_limit_in_bytes: limits.memory,
        // As much as without swap.
        memory_swap_limit_in_bytes: limits.memory,
        oom_score_adj: oom_score_adj.unwrap_or_default(),
        ..LinuxContainerResources::default()
    }
}

fn hostname(sandbox: &SandboxConfig) -> String {
    let name = sandbox.hostname();
    let end = name.len().min(MAX_HOSTNAME);
    let name = name.get(..end).unwrap_or(name);
    name.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of upstream's `calculateLinuxResources`.
    #[test]
    fn limits_are_those_of_the_kubelet() {
        let of = |millicpu_share, millicpu, memory| {
            let limits = Limits {
                millicpu_share,
                millicpu,
                memory,
            };
            let made = resources(limits, None);
            (made.cpu_shares, made.cpu_quota, made.memory_limit_in_bytes)
        };
        assert_eq!(of(500, 250, 64 << 20), (512, 25_000, 64 << 20));
        assert_eq!(of(0, 0, 0), (2, -1, 0));
        assert_eq!(of(1, 1, 0), (2, 1000, 0));
    }

    #[test]
    fn a_container_asks_for_what_its_spec_does() {
        let config = ContainerConfig {
            security: Security {
                run_as_group: Some(7),
                supplemental_groups: vec![4242],
                no_new_privileges: true,
                read_only: true,
                add: vec!["NET_ADMIN".into()],
                drop: vec!["ALL".into()],
                ..Security::default()
            },
            processes: Processes::OfPod,
            oom_score_adj: Some(1000),
            ..ContainerConfig::default()
        };
        let parts = Parts {
            image: k8s_cri::v1::ImageSpec::default(),
            image_user: Some(5),
            labels: Pairs::new(),
            annotations: Pairs::new(),
            mounts: Vec::new(),
            log_path: "main/0.log".into(),
            target: String::new(),
            host_network: true,
        };
        let linux = container(&config, parts).linux.unwrap();
        assert_eq!(linux.resources.unwrap().oom_score_adj, 1000);
        let context = linux.security_context.unwrap();
        assert_eq!(context.run_as_user.unwrap().value, 5);
        assert_eq!(context.run_as_group.unwrap().value, 7);
        assert!(context.no_new_privs && context.readonly_rootfs && !context.privileged);
        assert_eq!(context.capabilities.unwrap().drop_capabilities, ["ALL"]);
        let namespaces = context.namespace_options.unwrap();
        assert_eq!(namespaces.network(), NamespaceMode::Node);
        assert_eq!(namespaces.pid(), NamespaceMode::Pod);
        assert_eq!(
            context.seccomp.unwrap().profile_type(),
            ProfileType::RuntimeDefault
        );
    }
}
