//! The configuration of a container.

use std::path::Path;

use k8s_cri::v1::{
    ContainerMetadata, KeyValue, LinuxContainerConfig, Mount, NamespaceMode, NamespaceOption,
};

use super::{id_mappings, namespaces, resources, security};
use crate::cri::identity::Pairs;
use crate::{ContainerConfig, Limits, Processes, SandboxConfig};

/// The data that the configuration of a container takes besides its spec.
pub struct Parts<'a> {
    /// The configuration of its sandbox.
    pub sandbox: &'a SandboxConfig,
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
    /// The directory of the seccomp profiles of the node.
    pub seccomp_root: &'a Path,
}

/// Returns the configuration of a container.
pub fn container(config: &ContainerConfig, parts: Parts<'_>) -> k8s_cri::v1::ContainerConfig {
    let each = config.pod.map_or(Limits::default(), |pod| pod.each);
    let limits = Limits::of(&config.resources).or(each);
    let env = config.env.iter().map(|(key, value)| KeyValue {
        key: key.clone(),
        value: value.clone(),
    });
    let namespaces = NamespaceOption {
        pid: pid_mode(&config.processes, parts.sandbox.host_pid).into(),
        target_id: parts.target,
        ..namespaces(parts.sandbox)
    };
    let context = security::context(
        &config.security,
        parts.image_user,
        namespaces,
        parts.seccomp_root,
    );
    // The files of volumes belong to the ids that the Pod sees.
    let ids = id_mappings(parts.sandbox);
    let mounts = parts.mounts.into_iter().map(|mount| Mount {
        uid_mappings: ids.clone(),
        gid_mappings: ids.clone(),
        ..mount
    });
    let mounts = mounts.collect();
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
        mounts,
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

const fn pid_mode(processes: &Processes, host_pid: bool) -> NamespaceMode {
    match (processes, host_pid) {
        (Processes::Of(_), _) => NamespaceMode::Target,
        (_, true) => NamespaceMode::Node,
        (Processes::Own, false) => NamespaceMode::Container,
        (Processes::OfPod, false) => NamespaceMode::Pod,
    }
}

#[cfg(test)]
mod tests {
    use k8s_cri::v1::security_profile::ProfileType;

    use super::*;
    use crate::Security;

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
        let sandbox = SandboxConfig {
            host_network: true,
            ..SandboxConfig::default()
        };
        let parts = Parts {
            sandbox: &sandbox,
            image: k8s_cri::v1::ImageSpec::default(),
            image_user: Some(5),
            labels: Pairs::new(),
            annotations: Pairs::new(),
            mounts: Vec::new(),
            log_path: "main/0.log".into(),
            target: String::new(),
            seccomp_root: Path::new("/profiles"),
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

    #[test]
    fn a_privileged_container_is_sent_as_one_and_volumes_with_the_ids_of_its_pod() {
        let config = ContainerConfig {
            security: Security {
                privileged: true,
                ..Security::default()
            },
            ..ContainerConfig::default()
        };
        let made = |sandbox: &SandboxConfig| {
            let parts = Parts {
                sandbox,
                image: k8s_cri::v1::ImageSpec::default(),
                image_user: None,
                labels: Pairs::new(),
                annotations: Pairs::new(),
                mounts: vec![Mount::default()],
                log_path: String::new(),
                target: String::new(),
                seccomp_root: Path::new("/profiles"),
            };
            container(&config, parts)
        };
        let mut sandbox = SandboxConfig::default();
        let of_node = made(&sandbox);
        let context = of_node.linux.unwrap().security_context.unwrap();
        assert!(context.privileged && context.run_as_user.is_none());
        // As from a kubelet: it is the runtime that masks nothing and applies no profile then.
        assert!(context.masked_paths.contains(&"/proc/kcore".to_owned()));
        assert!(of_node.mounts[0].uid_mappings.is_empty());
        sandbox.first_user = Some(65_536);
        let own = made(&sandbox);
        let context = own.linux.unwrap().security_context.unwrap();
        let users = context.namespace_options.unwrap().userns_options.unwrap();
        assert_eq!(users.mode(), NamespaceMode::Pod);
        assert_eq!(users.uids[0].host_id, 65_536);
        let mount = &own.mounts[0];
        assert_eq!(mount.uid_mappings, users.uids);
        assert_eq!(mount.gid_mappings, users.gids);
    }

    #[test]
    fn a_container_sees_the_processes_that_its_pod_and_itself_ask_for() {
        let target = Processes::Of(crate::ContainerId::default());
        assert_eq!(pid_mode(&Processes::Own, false), NamespaceMode::Container);
        assert_eq!(pid_mode(&Processes::OfPod, false), NamespaceMode::Pod);
        assert_eq!(pid_mode(&Processes::Own, true), NamespaceMode::Node);
        assert_eq!(pid_mode(&target, true), NamespaceMode::Target);
    }
}
