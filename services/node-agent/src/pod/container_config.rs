//! Derives parts of a container's runtime configuration from its spec. Pure.

use setpoint_model::pod::running_containers;
use setpoint_proto::core::{Container, ContainerPort, Pod, PodSpec};
use setpoint_runtime::{Console, HostPort, Hosts, Profile, Pull, Security, TerminationMessage};

use crate::pod::ephemeral;

/// Capabilities that are never granted: each of them lets a container leave its confinement or control the whole
/// machine, as `privileged` would.
const DENIED: [&str; 12] = [
    "ALL",
    "BPF",
    "DAC_READ_SEARCH",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "PERFMON",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_TIME",
];

/// Returns the image pull policy of this name.
pub fn pull_policy(name: &str) -> Pull {
    match name {
        "Always" => Pull::Always,
        "Never" => Pull::Never,
        _ => Pull::IfNotPresent,
    }
}

/// Returns the terminal and stdin.
pub fn console(container: &Container) -> Console {
    Console {
        stdin: container.stdin,
        stdin_once: container.stdin_once,
        tty: container.tty,
    }
}

/// Returns the signal to stop the container with; empty for the image's.
pub fn stop_signal(container: &Container) -> String {
    let lifecycle = container.lifecycle.as_ref();
    let signal = lifecycle.and_then(|lifecycle| lifecycle.stop_signal.clone());
    signal.unwrap_or_default()
}

/// Returns where the termination message is.
pub fn termination_message(container: &Container) -> TerminationMessage {
    TerminationMessage {
        path: container.termination_message_path.clone(),
        falls_back_to_logs: container.termination_message_policy == "FallbackToLogsOnError",
    }
}

/// Returns the ports of the node that lead to a Pod with a network of its own.
pub fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let ports = running_containers(spec).flat_map(|container| &container.ports);
    let number = |port| u16::try_from(port).ok().filter(|port| *port > 0);
    let of = |port: &ContainerPort| {
        Some(HostPort {
            ip: port.host_ip.parse().ok(),
            protocol: port.protocol.clone(),
            port: number(port.host_port)?,
            container_port: number(port.container_port)?,
        })
    };
    ports
        .filter(|_| !spec.host_network)
        .filter_map(of)
        .collect()
}

/// Returns the entries of the file /etc/hosts, with those of the cluster's servers. `domain` is that of the cluster.
pub fn hosts(pod: &Pod, cluster: Vec<(String, Vec<String>)>, domain: &str) -> Hosts {
    let aliases = pod.spec.host_aliases.iter();
    let aliases = aliases.map(|alias| (alias.ip.clone(), alias.hostnames.clone()));
    Hosts {
        cluster,
        host_network: pod.spec.host_network,
        domain: match pod.spec.subdomain.as_str() {
            "" => String::new(),
            subdomain => format!("{subdomain}.{}.svc.{domain}", pod.metadata.namespace),
        },
        aliases: aliases.collect(),
    }
}

/// Returns the security settings, without denied capabilities. Fields of the container override those of the Pod.
pub fn security(spec: &PodSpec, container: &Container) -> Security {
    let pod = spec.security_context.clone().unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let groups = pod.supplemental_groups.iter().chain(pod.fs_group.as_ref());
    let seccomp = own
        .seccomp_profile
        .as_ref()
        .or(pod.seccomp_profile.as_ref());
    let app_armor = own
        .app_armor_profile
        .as_ref()
        .or(pod.app_armor_profile.as_ref());
    let capabilities = own.capabilities.unwrap_or_default();
    let add = capabilities.add.iter().map(|name| capability(name));
    Security {
        run_as_user: own.run_as_user.or(pod.run_as_user),
        run_as_group: own.run_as_group.or(pod.run_as_group),
        run_as_non_root: own.run_as_non_root.or(pod.run_as_non_root) == Some(true),
        privileged: own.privileged == Some(true),
        supplemental_groups: groups.copied().collect(),
        read_only: own.read_only_root_filesystem.unwrap_or_default(),
        no_new_privileges: own.allow_privilege_escalation == Some(false),
        strict_groups: pod.supplemental_groups_policy.as_deref() == Some("Strict"),
        seccomp_profile: seccomp.map_or(Profile::Unset, |found| {
            profile(&found.r#type, found.localhost_profile.as_ref())
        }),
        app_armor_profile: app_armor.map_or(Profile::Unset, |found| {
            profile(&found.r#type, found.localhost_profile.as_ref())
        }),
        add: add.filter(|name| !is_denied(name)).collect(),
        drop: capabilities
            .drop
            .iter()
            .map(|name| capability(name))
            .collect(),
    }
}

/// Returns whether a container is privileged.
pub fn is_privileged(container: &Container) -> bool {
    let context = container.security_context.as_ref();
    context.and_then(|context| context.privileged) == Some(true)
}

/// Returns whether a Pod has a privileged container.
pub fn has_privileged(spec: &PodSpec) -> bool {
    let own = spec.init_containers.iter().chain(&spec.containers);
    own.clone().any(is_privileged) || ephemeral::containers(spec).any(|added| is_privileged(&added))
}

/// Returns the profile of this type and, if it is one of the node, this name.
fn profile(kind: &str, name: Option<&String>) -> Profile {
    match kind {
        "RuntimeDefault" => Profile::RuntimeDefault,
        "Unconfined" => Profile::Unconfined,
        "Localhost" => Profile::Localhost(name.cloned().unwrap_or_default()),
        _ => Profile::Unset,
    }
}

/// Returns the requested capabilities that are never granted.
pub fn denied_capabilities(container: &Container) -> Vec<String> {
    let context = container.security_context.as_ref();
    let asked = context.and_then(|context| context.capabilities.as_ref());
    let add = asked.into_iter().flat_map(|asked| &asked.add);
    add.map(|name| capability(name))
        .filter(|name| is_denied(name))
        .collect()
}

/// Normalizes the name of a capability to Kubernetes' form, `NET_ADMIN`. Engines also accept `cap_net_admin`.
fn capability(name: &str) -> String {
    let upper = name.trim().to_ascii_uppercase();
    upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned()
}

/// Returns whether the container requests a capability.
pub fn requests(container: &Container, wanted: &str) -> bool {
    let context = container.security_context.as_ref();
    let asked = context.and_then(|context| context.capabilities.as_ref());
    let mut add = asked.into_iter().flat_map(|asked| &asked.add);
    add.any(|name| capability(name) == wanted)
}

fn is_denied(name: &str) -> bool {
    DENIED.contains(&name)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Capabilities, SecurityContext};

    use super::*;

    fn asks(add: &[&str]) -> Container {
        let capabilities = Capabilities {
            add: add.iter().map(|name| (*name).to_owned()).collect(),
            drop: vec!["all".into(), "cap_mknod".into()],
        };
        let context = SecurityContext {
            privileged: Some(true),
            capabilities: Some(capabilities),
            run_as_user: Some(1000),
            ..SecurityContext::default()
        };
        Container {
            security_context: Some(context),
            ..Container::default()
        }
    }

    /// Checks F14.
    #[test]
    fn denied_capabilities_are_recognized_in_every_spelling() {
        let spellings = [
            "ALL",
            "all",
            "All",
            "CAP_ALL",
            "cap_all",
            " all ",
            "cap_Sys_Admin",
            "SYS_MODULE",
        ];
        let container = asks(&spellings);
        assert_eq!(
            security(&PodSpec::default(), &container).add,
            Vec::<String>::new()
        );
        assert_eq!(denied_capabilities(&container).len(), spellings.len());
    }

    #[test]
    fn a_pod_is_privileged_with_any_container_that_is() {
        let added = |privileged| setpoint_proto::core::EphemeralContainer {
            ephemeral_container_common: setpoint_proto::core::EphemeralContainerCommon {
                security_context: Some(SecurityContext {
                    privileged: Some(privileged),
                    ..SecurityContext::default()
                }),
                ..Default::default()
            },
            ..Default::default()
        };
        let mut spec = PodSpec {
            containers: vec![Container::default()],
            ephemeral_containers: vec![added(false)],
            ..PodSpec::default()
        };
        assert!(!has_privileged(&spec));
        spec.ephemeral_containers.push(added(true));
        assert!(has_privileged(&spec));
        spec.ephemeral_containers.clear();
        spec.init_containers.push(asks(&[]));
        assert!(has_privileged(&spec));
    }

    #[test]
    fn other_capabilities_are_granted_under_their_normalized_names() {
        let container = asks(&["cap_net_admin", "NET_RAW"]);
        let security = security(&PodSpec::default(), &container);
        assert_eq!(security.add, ["NET_ADMIN", "NET_RAW"]);
        assert_eq!(security.drop, ["ALL", "MKNOD"]);
        assert_eq!(security.run_as_user, Some(1000));
        assert!(security.privileged);
        assert!(denied_capabilities(&container).is_empty());
    }
}
