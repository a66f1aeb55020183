//! The fields of a container and its mounts.

use setpoint_proto::core::{Container, VolumeMount};

use super::{Row, Support};

/// The API's default for `terminationMessagePath`.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// The path and the volume of the token that the gateway mounts in every container unless the Pod or its account opts
/// out.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";

pub const CONTAINER: &[Row<Container>] = &[
    Row::supported("name"),
    Row::supported("image"),
    Row::supported("command"),
    Row::supported("args"),
    Row::supported("workingDir"),
    Row::supported("env"),
    Row::supported("envFrom"),
    Row::supported("imagePullPolicy"),
    Row::supported("securityContext"),
    Row::supported("resizePolicy"),
    Row::not_docker("ports.hostPort", |container| {
        container.ports.iter().any(|port| port.host_port != 0)
    }),
    // The limit of ephemeral storage is enforced by evictions, on all nodes.
    Row::docker_only("resources.limits", |container| {
        let mut limits = container.resources.limits.keys();
        limits.any(|name| name != "ephemeral-storage")
    }),
    Row::refused("resources.claims", |container| {
        !container.resources.claims.is_empty()
    }),
    Row::mounts_only("volumeMounts", |container| {
        container.volume_mounts.iter().any(is_requested)
    }),
    Row::refused("volumeDevices", |container| {
        !container.volume_devices.is_empty()
    }),
    // Without effect for placeholders, whose Event says so.
    Row::supported("livenessProbe"),
    Row::supported("readinessProbe"),
    Row::supported("startupProbe"),
    Row::supported("lifecycle"),
    Row::docker_only("lifecycle.stopSignal", |container| {
        let lifecycle = container.lifecycle.as_ref();
        lifecycle.is_some_and(|lifecycle| lifecycle.stop_signal.is_some())
    }),
    Row::docker_only("terminationMessagePath", |container| {
        !["", TERMINATION_LOG].contains(&container.termination_message_path.as_str())
    }),
    Row::supported("terminationMessagePolicy"),
    Row::docker_only("stdin", |container| container.stdin),
    Row::docker_only("stdinOnce", |container| container.stdin_once),
    Row::docker_only("tty", |container| container.tty),
    Row::supported("restartPolicy"),
    Row::supported("restartPolicyRules"),
];

pub const MOUNT: &[Row<VolumeMount>] = &[
    Row::supported("name"),
    Row::supported("readOnly"),
    Row::supported("mountPath"),
    Row::supported("subPath"),
    Row::supported("subPathExpr"),
    Row::ignored(
        "mountPropagation[HostToContainer]",
        |mount: &VolumeMount| mount.mount_propagation.as_deref() == Some("HostToContainer"),
    )
    .with_cri(Support::Supported),
    // What a container mounts reaches no other.
    Row::ignored("mountPropagation[Bidirectional]", |mount| {
        mount.mount_propagation.as_deref() == Some("Bidirectional")
    }),
    Row::refused("recursiveReadOnly[Enabled]", |mount: &VolumeMount| {
        mount.recursive_read_only.as_deref() == Some("Enabled")
    })
    .with_cri(Support::IfPossible),
    Row::ignored("bindMountOptions", |mount| {
        !mount.bind_mount_options.is_empty()
    }),
];

/// Returns whether the author of the Pod requested the mount. The mount of a token, which few programs need, would
/// otherwise be named in an Event of every Pod.
fn is_requested(mount: &VolumeMount) -> bool {
    mount.mount_path != TOKEN_PATH || !mount.name.starts_with(TOKEN_VOLUME)
}
