//! Validation of security contexts.

use setpoint_proto::core::{
    AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext,
};

use super::validate::for_each_container;
use super::{paths, windows};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const PROC_MOUNTS: &[&str] = &["Default", "Unmasked"];
const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const FS_GROUP_CHANGES: &[&str] = &["Always", "OnRootMismatch"];
const GROUP_POLICIES: &[&str] = &["Merge", "Strict"];
/// Upstream also has `MountOption`, behind a feature gate that is off.
const SE_LINUX_CHANGES: &[&str] = &["Recursive"];
/// The longest file path on Linux, without its terminating zero byte.
const PATH_MAX: usize = 4095;
const SYSCTL_MAX: usize = 253;

/// Validates the security context of a container.
pub fn validate(
    context: Option<&SecurityContext>,
    host_users: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(context) = context else {
        return;
    };
    validate_id(context.run_as_user, &path.field("runAsUser"), errors);
    validate_id(context.run_as_group, &path.field("runAsGroup"), errors);
    validate_proc_mount(context, host_users, &path.field("procMount"), errors);
    let seccomp = context.seccomp_profile.as_ref();
    validate_seccomp(seccomp, &path.field("seccompProfile"), errors);
    validate_escalation(context, path, errors);
    let options = context.windows_options.as_ref();
    windows::validate(options, &path.field("windowsOptions"), errors);
    let profile = context.app_armor_profile.as_ref();
    validate_app_armor(profile, &path.field("appArmorProfile"), errors);
}

/// Validates the security context of a Pod and its use of host namespaces.
pub fn validate_pod(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_host_users(spec, path, errors);
    let path = path.field("securityContext");
    if spec.share_process_namespace == Some(true) && spec.host_pid {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.field("shareProcessNamespace"), true, detail);
    }
    let Some(context) = &spec.security_context else {
        return;
    };
    for (id, name) in [
        (context.run_as_user, "runAsUser"),
        (context.run_as_group, "runAsGroup"),
        (context.fs_group, "fsGroup"),
    ] {
        validate_id(id, &path.field(name), errors);
    }
    let groups = path.field("supplementalGroups");
    for (index, group) in context.supplemental_groups.iter().enumerate() {
        validate_id(Some(*group), &groups.index(index), errors);
    }
    validate_sysctls(spec, context, &path.field("sysctls"), errors);
    for (policy, name, known) in [
        (
            &context.fs_group_change_policy,
            "fsGroupChangePolicy",
            FS_GROUP_CHANGES,
        ),
        (
            &context.supplemental_groups_policy,
            "supplementalGroupsPolicy",
            GROUP_POLICIES,
        ),
        (
            &context.se_linux_change_policy,
            "seLinuxChangePolicy",
            SE_LINUX_CHANGES,
        ),
    ] {
        errors.one_of(&path.field(name), policy.as_deref(), known);
    }
    let seccomp = context.seccomp_profile.as_ref();
    validate_seccomp(seccomp, &path.field("seccompProfile"), errors);
    let options = context.windows_options.as_ref();
    windows::validate(options, &path.field("windowsOptions"), errors);
    let profile = context.app_armor_profile.as_ref();
    validate_app_armor(profile, &path.field("appArmorProfile"), errors);
}

/// Validates the id of a user or group, if it is set.
pub fn validate_id(id: Option<i64>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(id) = id
        && !(0..=i64::from(i32::MAX)).contains(&id)
    {
        errors.invalid(path, id, "must be between 0 and 2147483647, inclusive");
    }
}

fn validate_host_users(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if spec.host_users != Some(false) {
        return;
    }
    for (shares, field) in [
        (spec.host_network, "hostNetwork"),
        (spec.host_pid, "HostPID"),
        (spec.host_ipc, "HostIPC"),
    ] {
        if shares {
            errors.forbidden(&path.field(field), NOT_WITHOUT_HOST_USERS);
        }
    }
    for_each_container(spec, path, |container, _, path| {
        if !container.volume_devices.is_empty() {
            errors.forbidden(&path.field("volumeDevices"), NOT_WITHOUT_HOST_USERS);
        }
    });
}

const NOT_WITHOUT_HOST_USERS: &str = "when `hostUsers` is false";

fn validate_proc_mount(
    context: &SecurityContext,
    host_users: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mount = context.proc_mount.as_deref();
    errors.one_of(path, mount, PROC_MOUNTS);
    if host_users && mount == Some("Unmasked") {
        errors.invalid(path, mount, "`hostUsers` must be false to use `Unmasked`");
    }
}

fn validate_escalation(context: &SecurityContext, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if context.allow_privilege_escalation != Some(false) {
        return;
    }
    if context.privileged == Some(true) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid(path, context, detail);
    }
    let added = context.capabilities.iter().flat_map(|all| &all.add);
    for _ in added.filter(|name| *name == "CAP_SYS_ADMIN") {
        let detail =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.invalid(path, context, detail);
    }
}

fn validate_seccomp(
    profile: Option<&SeccompProfile>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(profile) = profile else {
        return;
    };
    validate_profile_type(&profile.r#type, "seccompProfile", path, errors);
    let at = path.field("localhostProfile");
    match (profile.r#type.as_str(), &profile.localhost_profile) {
        ("Localhost", None) => {
            errors.required(&at, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(file)) => paths::validate_descending(file, &at, errors),
        (_, Some(_)) => {
            errors.invalid(
                &at,
                profile,
                "can only be set when seccomp type is Localhost",
            );
        }
        (_, None) => {}
    }
}

fn validate_app_armor(
    profile: Option<&AppArmorProfile>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let Some(profile) = profile else {
        return;
    };
    validate_profile_type(&profile.r#type, "appArmorProfile", path, errors);
    let at = path.field("localhostProfile");
    match (
        profile.r#type.as_str(),
        profile.localhost_profile.as_deref(),
    ) {
        ("Localhost", None | Some("")) => {
            errors.required(&at, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                errors.invalid(&at, name, "must not be padded with whitespace");
            }
            if name.len() > PATH_MAX {
                errors.too_long(&at, PATH_MAX);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            errors.invalid(&at, name, "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

fn validate_profile_type(
    r#type: &str,
    field: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("type");
    match r#type {
        "" => errors.required(&at, &format!("type is required when {field} is set")),
        other => errors.one_of_or_empty(&at, other, PROFILES),
    }
}

fn validate_sysctls(
    spec: &PodSpec,
    context: &PodSecurityContext,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, sysctl) in context.sysctls.iter().enumerate() {
        let entry = path.index(index);
        let (at, name) = (entry.field("name"), sysctl.name.as_str());
        if name.is_empty() {
            errors.required(&at, "");
        } else if !is_sysctl(name) {
            let detail = format!(
                "must have at most {SYSCTL_MAX} characters and match regex \
                ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.invalid(&at, name, detail);
        } else if !seen.insert(name) {
            errors.duplicate(&at, name);
        }
        let name = name.replace('/', ".");
        let of_network = name.starts_with("net.");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || name == "kernel.sem";
        if spec.host_network && of_network {
            let detail = "may not be specified when 'hostNetwork' is true";
            errors.invalid(&at, &sysctl.name, detail);
        } else if spec.host_ipc && of_ipc {
            let detail = "may not be specified when 'hostIPC' is true";
            errors.invalid(&at, &sysctl.name, detail);
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let edge = |byte: Option<u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let plain = |byte: u8| edge(Some(byte)) || b"-_".contains(&byte);
    let part = |part: &str| {
        let bytes = part.as_bytes();
        edge(bytes.first().copied())
            && edge(bytes.last().copied())
            && bytes.iter().copied().all(plain)
    };
    name.len() <= SYSCTL_MAX && name.split(['.', '/']).all(part)
}
