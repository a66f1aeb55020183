//! What the engine is told to make. Pure.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, EndpointSettings, HostConfig, HostConfigLogConfig, Mount, MountType,
    MountVolumeOptions, NetworkingConfig,
};

use super::engine::Engine;
use super::identity::Identity;
use super::volume;
use crate::runtime::{ContainerConfig, Limits, LogLimits, SandboxConfig, Security, Volume};

/// The engine refuses to limit memory to less.
const LEAST_MEMORY: i64 = 6 << 20;
/// The engine refuses to limit CPU to less than a hundredth.
const LEAST_MILLICPU: i64 = 10;
/// Linux takes no longer host names.
const LONGEST_HOSTNAME: usize = 63;

/// The container that holds a Pod's namespaces, its address and its volumes.
pub fn pause(
    engine: &Engine,
    node: &str,
    image: &str,
    identity: &Identity,
    sandbox: &SandboxConfig,
    volumes: &[Volume],
) -> ContainerCreateBody {
    let mounts = volumes
        .iter()
        .map(|volume| mount(&sandbox.uid, &volume.name, &volume::inside(volume), false));
    let endpoint = EndpointSettings {
        // Without it the engine goes by the network's name, which another network may have, too.
        network_id: Some(engine.network.clone()),
        ..EndpointSettings::default()
    };
    let endpoints = HashMap::from([(engine.network.clone(), endpoint)]);
    ContainerCreateBody {
        image: Some(image.to_owned()),
        hostname: Some(hostname(sandbox)),
        labels: Some(identity.labels(&engine.cluster, node)),
        host_config: Some(HostConfig {
            network_mode: Some(engine.network.clone()),
            ipc_mode: Some("shareable".to_owned()),
            mounts: Some(mounts.collect()),
            cpu_shares: Some(2),
            ..HostConfig::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(endpoints),
        }),
        ..ContainerCreateBody::default()
    }
}

/// A container in the namespaces of its Pod.
pub fn container(
    engine: &Engine,
    node: &str,
    identity: &Identity,
    config: &ContainerConfig,
    pause: &str,
    image_user: &str,
) -> ContainerCreateBody {
    let env = config
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let unless_empty = |words: &Vec<String>| (!words.is_empty()).then(|| words.clone());
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    ContainerCreateBody {
        image: Some(config.image.clone()),
        entrypoint: unless_empty(&config.command),
        cmd: unless_empty(&config.args),
        env: Some(env.collect()),
        working_dir: some(&config.working_dir),
        user: some(&user(&config.security, image_user)),
        labels: Some(identity.labels(&engine.cluster, node)),
        host_config: Some(HostConfig {
            network_mode: Some(format!("container:{pause}")),
            ipc_mode: Some(format!("container:{pause}")),
            ..host_config(engine, config)
        }),
        ..ContainerCreateBody::default()
    }
}

/// The user and the group in the engine's words; empty for the image's own.
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
    let security = &config.security;
    let groups = security.supplemental_groups.iter();
    let whole = config.mounts.iter().filter(|mount| mount.copies.is_empty());
    let mounts = whole.map(|seen| mount(&config.id.uid, &seen.volume, &seen.path, seen.read_only));
    let locked = security
        .no_new_privileges
        .then(|| vec!["no-new-privileges".to_owned()]);
    HostConfig {
        log_config: Some(log(config.log)),
        mounts: Some(mounts.collect()),
        readonly_rootfs: Some(security.read_only),
        group_add: Some(groups.map(ToString::to_string).collect()),
        cap_add: Some(security.add.clone()),
        cap_drop: Some(security.drop.clone()),
        security_opt: locked,
        ..limited(config.limits, engine.cpus)
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

fn limited(limits: Limits, cpus: i64) -> HostConfig {
    // More CPU than there is means as much as there is; the engine would refuse it.
    let millicpu = limits
        .millicpu
        .max(LEAST_MILLICPU)
        .min(cpus.saturating_mul(1000));
    let memory = limits.memory.max(LEAST_MEMORY);
    let limit = |limit: i64, amount: i64| (limit > 0).then_some(amount);
    HostConfig {
        cpu_shares: Some((limits.millicpu_share.saturating_mul(1024) / 1000).clamp(2, 262_144)),
        nano_cpus: limit(limits.millicpu, millicpu.saturating_mul(1_000_000)),
        memory: limit(limits.memory, memory),
        // The sum of memory and swap: equal means no swap.
        memory_swap: limit(limits.memory, memory),
        ..HostConfig::default()
    }
}

fn mount(uid: &str, volume: &str, path: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(volume::name(uid, volume)),
        target: Some(path.to_owned()),
        read_only: Some(read_only),
        // Kubernetes shows a volume as it is: what the image has in its place stays hidden.
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(true),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    }
}

fn hostname(sandbox: &SandboxConfig) -> String {
    let name = match sandbox.hostname.as_str() {
        "" => &sandbox.name,
        named => named,
    };
    let end = name.len().min(LONGEST_HOSTNAME);
    name.get(..end)
        .unwrap_or(name)
        .trim_end_matches(['-', '.'])
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_stay_within_what_the_engine_takes() {
        let limits = |millicpu, memory| {
            let asked = Limits {
                millicpu_share: 500,
                millicpu,
                memory,
            };
            let host = limited(asked, 2);
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
    fn a_group_without_a_user_goes_with_the_user_of_the_image() {
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
    fn nothing_that_an_engine_in_a_container_forbids_is_asked_for() {
        let host = limited(Limits::default(), 2);
        assert_eq!((host.privileged, host.oom_score_adj), (None, None));
        assert_eq!(host.cpu_shares, Some(2));
    }
}
