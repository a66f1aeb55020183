//! The fields of a container, of its security context and of its mounts.

use setpoint_proto::core::{Container, SecurityContext, VolumeMount};

use super::pod::{app_armor, labels, seccomp};
use super::{Row, Support};

/// Where Kubernetes reads a container's last words unless told otherwise.
const TERMINATION_LOG: &str = "/dev/termination-log";

pub const CONTAINER: &[Row<Container>] = &[
    Row::obeyed("name"),
    Row::obeyed("image"),
    Row::obeyed("command"),
    Row::obeyed("args"),
    Row::obeyed("workingDir"),
    Row::obeyed("env"),
    Row::obeyed("envFrom"),
    Row::obeyed("imagePullPolicy"),
    Row::obeyed("securityContext"),
    // No container is resized in place.
    Row::obeyed("resizePolicy"),
    Row::by_processes("ports.hostPort", |container| {
        container.ports.iter().any(|port| port.host_port != 0)
    }),
    Row::by_engine("resources.limits", |container| {
        !container.resources.limits.is_empty()
    }),
    Row::refused("resources.claims", |container| {
        !container.resources.claims.is_empty()
    }),
    Row::by_engine("volumeMounts", |container| {
        !container.volume_mounts.is_empty()
    }),
    Row::refused("volumeDevices", |container| {
        !container.volume_devices.is_empty()
    }),
    Row::ignored("livenessProbe", |container| {
        container.liveness_probe.is_some()
    }),
    Row::ignored("readinessProbe", |container| {
        container.readiness_probe.is_some()
    }),
    Row::ignored("startupProbe", |container| {
        container.startup_probe.is_some()
    }),
    Row::ignored("lifecycle", |container| container.lifecycle.is_some()),
    Row::ignored("terminationMessagePath", |container| {
        !["", TERMINATION_LOG].contains(&container.termination_message_path.as_str())
    }),
    Row::ignored("terminationMessagePolicy", |container| {
        !["", "File"].contains(&container.termination_message_policy.as_str())
    }),
    Row::ignored("stdin", |container| container.stdin),
    Row::ignored("stdinOnce", |container| container.stdin_once),
    Row::ignored("tty", |container| container.tty),
    Row::ignored("restartPolicyRules", |container| {
        !container.restart_policy_rules.is_empty()
    }),
];

/// Containers that are no init containers: those have a restart policy of their own to be sidecars.
pub const MAIN: &[Row<Container>] = &[Row::ignored("restartPolicy", |container| {
    container.restart_policy.is_some()
})];

pub const SECURITY: &[Row<SecurityContext>] = &[
    Row::obeyed("runAsUser"),
    Row::obeyed("runAsNonRoot"),
    Row::obeyed("runAsGroup"),
    Row::obeyed("allowPrivilegeEscalation"),
    // Those that no runtime grants are named one by one besides.
    Row::by_engine("capabilities", |context| {
        context
            .capabilities
            .as_ref()
            .is_some_and(|asked| !asked.add.is_empty() || !asked.drop.is_empty())
    }),
    Row::ignored("privileged", |context| context.privileged == Some(true)),
    Row::by_engine("readOnlyRootFilesystem", |context| {
        context.read_only_root_filesystem == Some(true)
    }),
    Row::ignored("procMount", |context| {
        context
            .proc_mount
            .as_deref()
            .is_some_and(|mount| mount != "Default")
    }),
    Row::ignored("windowsOptions", |context| {
        context.windows_options.is_some()
    }),
    Row::ignored("seLinuxOptions", |context| {
        labels(context.se_linux_options.as_ref())
    }),
    Row::by_engine("seccompProfile[RuntimeDefault]", |context| {
        seccomp(context.seccomp_profile.as_ref()) == "RuntimeDefault"
    }),
    Row::by_processes("seccompProfile[Unconfined]", |context| {
        seccomp(context.seccomp_profile.as_ref()) == "Unconfined"
    }),
    Row::refused("seccompProfile[Localhost]", |context| {
        seccomp(context.seccomp_profile.as_ref()) == "Localhost"
    }),
    Row::new(
        "appArmorProfile[RuntimeDefault]",
        |context| app_armor(context.app_armor_profile.as_ref()) == "RuntimeDefault",
        Support::Obeyed,
        Support::Refused,
    ),
    Row::by_processes("appArmorProfile[Unconfined]", |context| {
        app_armor(context.app_armor_profile.as_ref()) == "Unconfined"
    }),
    Row::refused("appArmorProfile[Localhost]", |context| {
        app_armor(context.app_armor_profile.as_ref()) == "Localhost"
    }),
];

pub const MOUNT: &[Row<VolumeMount>] = &[
    Row::obeyed("name"),
    Row::obeyed("readOnly"),
    Row::obeyed("mountPath"),
    Row::obeyed("subPath"),
    Row::obeyed("subPathExpr"),
    Row::ignored("mountPropagation", |mount| {
        mount
            .mount_propagation
            .as_deref()
            .is_some_and(|mode| mode != "None")
    }),
    Row::refused("recursiveReadOnly[Enabled]", |mount| {
        mount.recursive_read_only.as_deref() == Some("Enabled")
    }),
    Row::ignored("bindMountOptions", |mount| {
        !mount.bind_mount_options.is_empty()
    }),
];
