//! Builds the engine's create requests. Pure.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, EndpointSettings, HostConfig, HostConfigLogConfig, Mount, MountType,
    MountVolumeOptions, NetworkingConfig,
};

use super::engine::Engine;
use super::identity::{Identity, Labels};
use super::{carrier, resize, termination, volume};
use crate::{ContainerConfig, HostPath, Limits, LogLimits, SandboxConfig, Security, Volume};

/// Minimum memory limit that the engine accepts.
const MIN_MEMORY: i64 = 6 << 20;
/// Minimum CPU limit that the engine accepts.
const MIN_MILLICPU: i64 = 10;
/// The user of pause containers, that of Kubernetes' own image.
const PAUSE_USER: &str = "65535:65535";
/// The capability to read files of all users, with which the agent's binary measures volumes in pause containers.
const READ_ALL: &str = "DAC_READ_SEARCH";
/// Capabilities with which the agent's binary writes files that belong to other users.
const WRITE_ALL: [&str; 4] = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"];
const NO_NEW_PRIVILEGES: &str = "no-new-privileges";
/// Maximum length of a host name in Linux.
const MAX_HOSTNAME: usize = 63;

/// Returns the request for a Pod's pause container, which holds its namespaces, address and volumes.
///
/// Containers of the Pod may share its processes, and the agent runs its own binary in it. So it has no rights, its
/// user is not root whatever its image says, and it writes nowhere.
pub fn pause(
    engine: &Engine,
    node: &str,
    image: &str,
    identity: &Identity,
    sandbox: &SandboxConfig,
    volumes: &[Volume],
) -> ContainerCreateBody {
    let own = volumes.iter().filter(|volume| volume::is_own(volume));
    let mounts = own.map(|volume| volume_mount(&sandbox.uid, volume, true));
    let endpoint = EndpointSettings {
        // Without the id the engine resolves the network by name, which is not unique.
        network_id: Some(engine.network.clone()),
        ..EndpointSettings::default()
    };
    let endpoints = HashMap::from([(engine.network.clone(), endpoint)]);
    ContainerCreateBody {
        image: Some(image.to_owned()),
        hostname: Some(hostname(sandbox)),
        domainname: some(&sandbox.hosts.domain),
        user: Some(PAUSE_USER.to_owned()),
        labels: Some(identity.labels(&engine.cluster, node)),
        host_config: Some(HostConfig {
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: engine.helper.as_ref().map(|_| vec![READ_ALL.to_owned()]),
            security_opt: Some(vec![NO_NEW_PRIVILEGES.to_owned()]),
            network_mode: Some(engine.network.clone()),
            ipc_mode: Some("shareable".to_owned()),
            mounts: Some(mounts.collect()),
            cpu_shares: Some(2),
            sysctls: Some(sandbox.sysctls.clone().into_iter().collect()),
            ..HostConfig::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(endpoints),
        }),
        ..ContainerCreateBody::default()
    }
}

/// Returns the request for a container in which the agent's binary writes to volumes.
pub fn writer(
    image: &str,
    labels: Labels,
    mounts: Vec<Mount>,
    command: &[&str],
) -> ContainerCreateBody {
    let [words, capabilities] =
        [command, &WRITE_ALL].map(|words| words.iter().map(ToString::to_string).collect());
    let body = carrier::body(image, labels, mounts);
    ContainerCreateBody {
        entrypoint: Some(words),
        cmd: None,
        user: Some("0:0".to_owned()),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        host_config: body.host_config.map(|host| HostConfig {
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(capabilities),
            security_opt: Some(vec![NO_NEW_PRIVILEGES.to_owned()]),
            ..host
        }),
        ..body
    }
}

/// Returns the request for a container in the namespaces of its Pod's pause container.
pub fn container(
    engine: &Engine,
    node: &str,
    identity: &Identity,
    config: &ContainerConfig,
    pause: &str,
    image_user: &str,
    own_files: impl Iterator<Item = Mount>,
) -> ContainerCreateBody {
    let console = config.console;
    let mut labels = identity.labels(&engine.cluster, node);
    labels.extend(termination::labels(&config.termination_message));
    labels.extend(resize::label(&config.resources));
    let mut host = host_config(engine, config);
    host.mounts.get_or_insert_default().extend(own_files);
    let env = config
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let unless_empty = |words: &Vec<String>| (!words.is_empty()).then(|| words.clone());
    ContainerCreateBody {
        image: Some(config.image.clone()),
        entrypoint: unless_empty(&config.command),
        cmd: unless_empty(&config.args),
        env: Some(env.collect()),
        working_dir: some(&config.working_dir),
        user: some(&user(&config.security, image_user)),
        labels: Some(labels),
        stop_signal: some(&config.stop_signal),
        open_stdin: Some(console.stdin),
        stdin_once: Some(console.stdin && console.stdin_once),
        tty: Some(console.tty),
        host_config: Some(HostConfig {
            network_mode: Some(format!("container:{pause}")),
            ipc_mode: Some(format!("container:{pause}")),
            ..host
        }),
        ..ContainerCreateBody::default()
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns `user:group` in the engine's format; empty for the image's user.
fn user(security: &Security, image_user: &str) -> String {
    let image_user = image_user.split(':').next().unwrap_or_default();
    match (security.run_as_user, security.run_as_group) {
        (Some(user), Some(group)) => format!("{user}:{group}"),
        (Some(user), None) => user.to_string(),
        (None, Some(group)) if image_user.is_empty() => format!("0:{group}"),
        (None, Some(group)) => format!("{image_user}:{group}"),
        (None, None) => String::new(),
    }
}

fn host_config(engine: &Engine, config: &ContainerConfig) -> HostConfig {
    let each = config.pod.map_or(Limits::default(), |pod| pod.each);
    let security = &config.security;
    let groups = security.supplemental_groups.iter();
    let created = |seen: &&crate::Mount| seen.host.as_ref().is_some_and(|host| host.create);
    let (binds, mounts): (Vec<_>, Vec<_>) = config.mounts.iter().partition(created);
    let mounts = mounts.into_iter().map(|seen| match &seen.host {
        Some(host) => host_mount(host, &seen.path, seen.read_only),
        None => {
            let name = volume::of_mount(&config.id.uid, seen);
            mount(name, &seen.path, seen.read_only)
        }
    });
    let locked = security
        .no_new_privileges
        .then(|| vec![NO_NEW_PRIVILEGES.to_owned()]);
    HostConfig {
        log_config: Some(log(config.log)),
        binds: Some(binds.into_iter().filter_map(bind).collect()),
        mounts: Some(mounts.collect()),
        readonly_rootfs: Some(security.read_only),
        group_add: Some(groups.map(ToString::to_string).collect()),
        cap_add: Some(security.add.clone()),
        cap_drop: Some(security.drop.clone()),
        security_opt: locked,
        ..resource_limits(Limits::of(&config.resources).or(each), engine.cpus)
    }
}

fn log(limits: LogLimits) -> HostConfigLogConfig {
    let options = [
        ("max-size", limits.max_size.to_string()),
        ("max-file", limits.max_files.to_string()),
    ];
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(options.map(|(name, value)| (name.to_owned(), value)).into()),
    }
}

/// Returns the limits of a container, in the range of the engine.
pub fn resource_limits(limits: Limits, cpus: i64) -> HostConfig {
    // The engine refuses a limit above the number of its CPUs; capping it has the same effect.
    let millicpu = limits
        .millicpu
        .max(MIN_MILLICPU)
        .min(cpus.saturating_mul(1000));
    let memory = limits.memory.max(MIN_MEMORY);
    let limit = |limit: i64, amount: i64| (limit > 0).then_some(amount);
    HostConfig {
        cpu_shares: Some((limits.millicpu_share.saturating_mul(1024) / 1000).clamp(2, 262_144)),
        nano_cpus: limit(limits.millicpu, millicpu.saturating_mul(1_000_000)),
        memory: limit(limits.memory, memory),
        // The sum of memory and swap: equal to `memory` for no swap.
        memory_swap: limit(limits.memory, memory),
        ..HostConfig::default()
    }
}

/// Returns the mount of a Pod's volume in the containers of the agent.
pub fn volume_mount(uid: &str, volume: &Volume, read_only: bool) -> Mount {
    let name = volume::name(uid, &volume.name);
    mount(name, &volume::mount_path(volume), read_only)
}

fn mount(volume: String, path: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(volume),
        target: Some(path.to_owned()),
        read_only: Some(read_only),
        // The engine must not copy the image's files into an empty volume, as Kubernetes does not.
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(true),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

/// Returns a mount in the older format of the engine, which creates a directory if there is nothing.
fn bind(seen: &crate::Mount) -> Option<String> {
    let host = seen.host.as_ref()?;
    let mode = if seen.read_only { "ro" } else { "rw" };
    Some(format!("{}:{}:{mode}", host.path, seen.path))
}

fn host_mount(host: &HostPath, path: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(host.path.clone()),
        target: Some(path.to_owned()),
        read_only: Some(read_only),
        ..Mount::default()
    }
}

fn hostname(sandbox: &SandboxConfig) -> String {
    let name = sandbox.hostname();
    let end = name.len().min(MAX_HOSTNAME);
    name.get(..end)
        .unwrap_or(name)
        .trim_end_matches(['-', '.'])
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_clamped_to_the_range_of_the_engine() {
        let limits = |millicpu, memory| {
            let asked = Limits {
                millicpu_share: 500,
                millicpu,
                memory,
            };
            let host = resource_limits(asked, 2);
            (host.nano_cpus, host.memory, host.memory_swap)
        };
        assert_eq!(
            limits(250, 64 << 20),
            (Some(250_000_000), Some(64 << 20), Some(64 << 20))
        );
        assert_eq!(
            limits(8000, 1),
            (Some(2_000_000_000), Some(6 << 20), Some(6 << 20))
        );
        assert_eq!(limits(0, 0), (None, None, None));
    }

    /// Checks F7.
    #[test]
    fn a_group_without_a_user_is_combined_with_the_user_of_the_image() {
        let user = |run_as_user, run_as_group, image| {
            let security = Security {
                run_as_user,
                run_as_group,
                ..Security::default()
            };
            super::user(&security, image)
        };
        assert_eq!(user(Some(5), Some(6), "nginx"), "5:6");
        assert_eq!(user(Some(5), None, "nginx"), "5");
        assert_eq!(user(None, Some(6), "nginx:7"), "nginx:6");
        assert_eq!(user(None, Some(6), ""), "0:6");
        assert_eq!(user(None, None, "nginx"), "");
    }

    #[test]
    fn a_request_has_no_setting_that_a_nested_engine_refuses() {
        let host = resource_limits(Limits::default(), 2);
        assert_eq!((host.privileged, host.oom_score_adj), (None, None));
        assert_eq!(host.cpu_shares, Some(2));
    }
}
