//! Fields that are for one operating system only.

use setpoint_proto::core::{PodSecurityContext, PodSpec, SecurityContext};

use super::validate::lists;
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;

/// Finds fields that are not for the operating system that the Pod names.
pub fn validate(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        Some("linux") => visit(spec, path, &forbid_windows, errors),
        Some("windows") => {
            let detail = "cannot be set for a windows pod";
            for (given, field) in [
                (spec.host_users.is_some(), "hostUsers"),
                (spec.host_pid, "hostPID"),
                (spec.host_ipc, "hostIPC"),
                (
                    spec.share_process_namespace.is_some(),
                    "shareProcessNamespace",
                ),
            ] {
                if given {
                    errors.forbidden(&path.field(field), detail);
                }
            }
            visit(spec, path, &forbid_linux, errors);
        }
        _ => {}
    }
}

/// A security context, of a Pod or of one of its containers.
enum Context<'c> {
    OfPod(&'c PodSecurityContext),
    OfContainer(&'c SecurityContext),
}

type Visit<'v> = &'v dyn Fn(&Context<'_>, &FieldPath<'_>, &mut FieldErrors);

fn visit(spec: &PodSpec, path: &FieldPath<'_>, forbid: Visit<'_>, errors: &mut FieldErrors) {
    if let Some(context) = &spec.security_context {
        let path = path.field("securityContext");
        forbid(&Context::OfPod(context), &path, errors);
    }
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            if let Some(context) = &container.security_context {
                let path = path.index(index);
                let path = path.field("securityContext");
                forbid(&Context::OfContainer(context), &path, errors);
            }
        }
    }
}

fn forbid_windows(context: &Context<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let options = match context {
        Context::OfPod(context) => &context.windows_options,
        Context::OfContainer(context) => &context.windows_options,
    };
    if options.is_some() {
        let detail = "windows options cannot be set for a linux pod";
        errors.forbidden(&path.field("windowsOptions"), detail);
    }
}

fn forbid_linux(context: &Context<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let given = match context {
        Context::OfPod(context) => of_linux_pods(context),
        Context::OfContainer(context) => of_linux_containers(context),
    };
    for (_, field) in given.into_iter().filter(|(given, _)| *given) {
        errors.forbidden(&path.field(field), "cannot be set for a windows pod");
    }
}

fn of_linux_pods(context: &PodSecurityContext) -> Vec<(bool, &'static str)> {
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

fn of_linux_containers(context: &SecurityContext) -> Vec<(bool, &'static str)> {
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
