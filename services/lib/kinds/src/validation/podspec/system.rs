//! Validation of fields that apply to one operating system only.

use setpoint_proto::core::{PodSecurityContext, PodSpec, SecurityContext};

use super::validate::for_each_container;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// A field that is forbidden, and whether it is set.
type Field = (bool, &'static str);

/// Forbids fields that do not apply to the operating system of the Pod.
pub fn validate(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        Some("linux") => {
            let field = "windowsOptions";
            let of_pod =
                |context: &PodSecurityContext| vec![(context.windows_options.is_some(), field)];
            let of_container =
                |context: &SecurityContext| vec![(context.windows_options.is_some(), field)];
            let detail = "windows options cannot be set for a linux pod";
            forbid_in_contexts(spec, of_pod, of_container, detail, path, errors);
        }
        Some("windows") => {
            let detail = "cannot be set for a windows pod";
            let fields = [
                (spec.host_users.is_some(), "hostUsers"),
                (spec.host_pid, "hostPID"),
                (spec.host_ipc, "hostIPC"),
                (
                    spec.share_process_namespace.is_some(),
                    "shareProcessNamespace",
                ),
            ];
            forbid(&fields, detail, path, errors);
            let (of_pod, of_container) = (linux_pod_fields, linux_container_fields);
            forbid_in_contexts(spec, of_pod, of_container, detail, path, errors);
        }
        _ => {}
    }
}

/// Forbids fields in the security contexts of the Pod and its containers.
fn forbid_in_contexts(
    spec: &PodSpec,
    of_pod: impl Fn(&PodSecurityContext) -> Vec<Field>,
    of_container: impl Fn(&SecurityContext) -> Vec<Field>,
    detail: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(context) = &spec.security_context {
        let path = path.field("securityContext");
        forbid(&of_pod(context), detail, &path, errors);
    }
    for_each_container(spec, path, |container, _, path| {
        if let Some(context) = &container.security_context {
            let path = path.field("securityContext");
            forbid(&of_container(context), detail, &path, errors);
        }
    });
}

fn forbid(fields: &[Field], detail: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (_, field) in fields.iter().filter(|(set, _)| *set) {
        errors.forbidden(&path.field(field), detail);
    }
}

fn linux_pod_fields(context: &PodSecurityContext) -> Vec<Field> {
    vec![
        (context.app_armor_profile.is_some(), "appArmorProfile"),
        (context.se_linux_options.is_some(), "seLinuxOptions"),
        (context.seccomp_profile.is_some(), "seccompProfile"),
        (context.fs_group.is_some(), "fsGroup"),
        (
            context.fs_group_change_policy.is_some(),
            "fsGroupChangePolicy",
        ),
        (!context.sysctls.is_empty(), "sysctls"),
        (context.run_as_user.is_some(), "runAsUser"),
        (context.run_as_group.is_some(), "runAsGroup"),
        (
            !context.supplemental_groups.is_empty(),
            "supplementalGroups",
        ),
        (
            context.supplemental_groups_policy.is_some(),
            "supplementalGroupsPolicy",
        ),
        (
            context.se_linux_change_policy.is_some(),
            "seLinuxChangePolicy",
        ),
    ]
}

fn linux_container_fields(context: &SecurityContext) -> Vec<Field> {
    vec![
        (context.app_armor_profile.is_some(), "appArmorProfile"),
        (context.se_linux_options.is_some(), "seLinuxOptions"),
        (context.seccomp_profile.is_some(), "seccompProfile"),
        (context.capabilities.is_some(), "capabilities"),
        (
            context.read_only_root_filesystem.is_some(),
            "readOnlyRootFilesystem",
        ),
        (context.privileged.is_some(), "privileged"),
        (
            context.allow_privilege_escalation.is_some(),
            "allowPrivilegeEscalation",
        ),
        (context.proc_mount.is_some(), "procMount"),
        (context.run_as_user.is_some(), "runAsUser"),
        (context.run_as_group.is_some(), "runAsGroup"),
    ]
}
