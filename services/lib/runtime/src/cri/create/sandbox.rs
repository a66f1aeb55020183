//! The configuration of a sandbox.

use k8s_cri::v1::{
    LinuxPodSandboxConfig, LinuxSandboxSecurityContext, PodSandboxConfig, PodSandboxMetadata,
    PortMapping, Protocol,
};

use super::{namespaces, resources, security};
use crate::cri::identity::Pairs;
use crate::{HostPort, Limits, SandboxConfig};

/// Maximum length of a host name in Linux.
const MAX_HOSTNAME: usize = 63;

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
    let overhead = Some(config.overhead).filter(|overhead| *overhead != Limits::default());
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: config.name.clone(),
            uid: config.uid.clone(),
            namespace: config.namespace.clone(),
            attempt: surroundings.attempt,
        }),
        // A Pod in the network of its node has the name of the node.
        hostname: match config.host_network {
            true => String::new(),
            false => hostname(config),
        },
        log_directory: surroundings.log_directory,
        port_mappings: config.host_ports.iter().map(port_mapping).collect(),
        labels: surroundings.labels,
        annotations: surroundings.annotations,
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: surroundings.cgroup_parent,
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces(config)),
                privileged: config.privileged,
                seccomp: Some(security::default_profile()),
                ..LinuxSandboxSecurityContext::default()
            }),
            sysctls: config.sysctls.clone().into_iter().collect(),
            overhead: overhead.map(|overhead| resources(overhead, None)),
            resources: config.resources.map(|pod| resources(pod.all, None)),
        }),
        ..PodSandboxConfig::default()
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

fn hostname(sandbox: &SandboxConfig) -> String {
    let name = sandbox.hostname();
    let end = name.len().min(MAX_HOSTNAME);
    let name = name.get(..end).unwrap_or(name);
    name.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_cri::v1::NamespaceMode;

    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings {
            attempt: 0,
            labels: Pairs::new(),
            annotations: Pairs::new(),
            log_directory: String::new(),
            cgroup_parent: String::new(),
        }
    }

    #[test]
    fn a_sandbox_has_the_namespaces_of_its_node_that_its_pod_asks_for() {
        let (node, pod, own) = (
            NamespaceMode::Node,
            NamespaceMode::Pod,
            NamespaceMode::Container,
        );
        for (network, pid, ipc, expected) in [
            (false, false, false, (pod, own, pod)),
            (true, false, false, (node, own, pod)),
            (false, true, true, (pod, node, node)),
        ] {
            let config = SandboxConfig {
                host_network: network,
                host_pid: pid,
                host_ipc: ipc,
                ..SandboxConfig::default()
            };
            let linux = sandbox(&config, surroundings()).linux.unwrap();
            let namespaces = linux.security_context.unwrap().namespace_options.unwrap();
            let found = (namespaces.network(), namespaces.pid(), namespaces.ipc());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_pod_with_users_of_its_own_has_the_range_that_it_was_given() {
        let context = |config: &SandboxConfig| {
            let linux = sandbox(config, surroundings()).linux.unwrap();
            linux.security_context.unwrap()
        };
        let users = |config: &SandboxConfig| {
            let namespaces = context(config).namespace_options.unwrap();
            namespaces.userns_options.unwrap()
        };
        let mut config = SandboxConfig::default();
        let of_node = users(&config);
        assert_eq!(of_node.mode(), NamespaceMode::Node);
        assert!(of_node.uids.is_empty() && of_node.gids.is_empty());
        config.first_user = Some(131_072);
        let own = users(&config);
        assert_eq!((own.mode(), &own.uids), (NamespaceMode::Pod, &own.gids));
        let ids = own.uids[0];
        let ids = (ids.container_id, ids.host_id, ids.length);
        assert_eq!(ids, (0, 131_072, 65_536));
        assert!(!context(&config).privileged);
        config.privileged = true;
        assert!(context(&config).privileged);
    }

    #[test]
    fn a_runtime_is_told_the_overhead_of_its_class() {
        let mut config = SandboxConfig::default();
        let overhead = |config: &SandboxConfig| {
            let linux = sandbox(config, surroundings()).linux.unwrap();
            linux
                .overhead
                .map(|overhead| overhead.memory_limit_in_bytes)
        };
        assert_eq!(overhead(&config), None);
        config.overhead.memory = 7;
        assert_eq!(overhead(&config), Some(7));
    }
}
