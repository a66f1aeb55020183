//! Ephemeral containers: added to a running Pod, started once, and never restarted.

use setpoint_proto::core::{Container, EphemeralContainer, PodSpec};

/// Returns the ephemeral containers of a Pod in the form of its other containers.
pub fn containers(spec: &PodSpec) -> impl Iterator<Item = Container> {
    spec.ephemeral_containers.iter().map(container)
}

/// Returns the ephemeral container of this name.
pub fn named<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a EphemeralContainer> {
    let mut all = spec.ephemeral_containers.iter();
    all.find(|ephemeral| ephemeral.ephemeral_container_common.name == name)
}

/// Returns an ephemeral container in the form of other containers, which has all of its fields but the target.
pub fn container(ephemeral: &EphemeralContainer) -> Container {
    let common = ephemeral.ephemeral_container_common.clone();
    Container {
        name: common.name,
        image: common.image,
        command: common.command,
        args: common.args,
        working_dir: common.working_dir,
        ports: common.ports,
        env: common.env,
        resources: common.resources,
        volume_mounts: common.volume_mounts,
        liveness_probe: common.liveness_probe,
        readiness_probe: common.readiness_probe,
        lifecycle: common.lifecycle,
        termination_message_path: common.termination_message_path,
        image_pull_policy: common.image_pull_policy,
        security_context: common.security_context,
        stdin: common.stdin,
        stdin_once: common.stdin_once,
        tty: common.tty,
        env_from: common.env_from,
        termination_message_policy: common.termination_message_policy,
        volume_devices: common.volume_devices,
        startup_probe: common.startup_probe,
        resize_policy: common.resize_policy,
        restart_policy: common.restart_policy,
        restart_policy_rules: common.restart_policy_rules,
    }
}
