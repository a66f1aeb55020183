//! Validates the security contexts of Pods and containers.

use setpoint_proto::core::{
    AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext,
};

use super::validate::lists;
use super::{paths, windows};
use crate::registry::validation::field_errors::Problems;
use crate::registry::validation::field_path::Path;

const PROC_MOUNTS: &[&str] = &["Default", "Unmasked"];
const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const FS_GROUP_CHANGES: &[&str] = &["Always", "OnRootMismatch"];
const GROUP_POLICIES: &[&str] = &["Merge", "Strict"];
/// Upstream knows `MountOption` too, behind a feature gate that is off.
const SE_LINUX_CHANGES: &[&str] = &["Recursive"];
/// The longest path of a file, less the zero at its end.
const PATH_MAX: usize = 4095;
const SYSCTL_MAX: usize = 253;

/// Finds what is wrong with the security context of a container.
pub fn validate(
    context: Option<&SecurityContext>,
    host_users: bool,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(context) = context else {
        return;
    };
    validate_id(context.run_as_user, &path.field("runAsUser"), problems);
    validate_id(context.run_as_group, &path.field("runAsGroup"), problems);
    validate_proc_mount(context, host_users, &path.field("procMount"), problems);
    let seccomp = context.seccomp_profile.as_ref();
    validate_seccomp(seccomp, &path.field("seccompProfile"), problems);
    validate_escalation(context, path, problems);
    let options = context.windows_options.as_ref();
    windows::validate(options, &path.field("windowsOptions"), problems);
    let profile = context.app_armor_profile.as_ref();
    validate_app_armor(profile, &path.field("appArmorProfile"), problems);
}

/// Finds what is wrong with the security context of a Pod, and with what it shares with its node.
pub fn validate_pod(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    validate_host_users(spec, path, problems);
    let path = path.field("securityContext");
    if spec.share_process_namespace == Some(true) && spec.host_pid {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        problems.invalid(&path.field("shareProcessNamespace"), true, detail);
    }
    let Some(context) = &spec.security_context else {
        return;
    };
    for (id, name) in [
        (context.run_as_user, "runAsUser"),
        (context.run_as_group, "runAsGroup"),
        (context.fs_group, "fsGroup"),
    ] {
        validate_id(id, &path.field(name), problems);
    }
    let groups = path.field("supplementalGroups");
    for (index, group) in context.supplemental_groups.iter().enumerate() {
        validate_id(Some(*group), &groups.index(index), problems);
    }
    validate_sysctls(spec, context, &path.field("sysctls"), problems);
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
        problems.one_of_if_given(&path.field(name), policy.as_deref(), known);
    }
    let seccomp = context.seccomp_profile.as_ref();
    validate_seccomp(seccomp, &path.field("seccompProfile"), problems);
    let options = context.windows_options.as_ref();
    windows::validate(options, &path.field("windowsOptions"), problems);
    let profile = context.app_armor_profile.as_ref();
    validate_app_armor(profile, &path.field("appArmorProfile"), problems);
}

/// A user's or group's number.
pub fn validate_id(id: Option<i64>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(id) = id
        && !(0..=i64::from(i32::MAX)).contains(&id)
    {
        problems.invalid(path, id, "must be between 0 and 2147483647, inclusive");
    }
}

fn validate_host_users(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    if spec.host_users != Some(false) {
        return;
    }
    for (shares, field) in [
        (spec.host_network, "hostNetwork"),
        (spec.host_pid, "HostPID"),
        (spec.host_ipc, "HostIPC"),
    ] {
        if shares {
            problems.forbidden(&path.field(field), NOT_WITHOUT_HOST_USERS);
        }
    }
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            if !container.volume_devices.is_empty() {
                let path = path.index(index);
                problems.forbidden(&path.field("volumeDevices"), NOT_WITHOUT_HOST_USERS);
            }
        }
    }
}

const NOT_WITHOUT_HOST_USERS: &str = "when `hostUsers` is false";

fn validate_proc_mount(
    context: &SecurityContext,
    host_users: bool,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mount = context.proc_mount.as_deref();
    problems.one_of_if_given(path, mount, PROC_MOUNTS);
    if host_users && mount == Some("Unmasked") {
        problems.invalid(path, mount, "`hostUsers` must be false to use `Unmasked`");
    }
}

fn validate_escalation(context: &SecurityContext, path: &Path<'_>, problems: &mut Problems) {
    if context.allow_privilege_escalation != Some(false) {
        return;
    }
    if context.privileged == Some(true) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        problems.invalid(path, context, detail);
    }
    let added = context.capabilities.iter().flat_map(|all| &all.add);
    for _ in added.filter(|name| *name == "CAP_SYS_ADMIN") {
        let detail =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        problems.invalid(path, context, detail);
    }
}

fn validate_seccomp(profile: Option<&SeccompProfile>, path: &Path<'_>, problems: &mut Problems) {
    let Some(profile) = profile else {
        return;
    };
    validate_profile_type(&profile.r#type, "seccompProfile", path, problems);
    let at = path.field("localhostProfile");
    match (profile.r#type.as_str(), &profile.localhost_profile) {
        ("Localhost", None) => {
            problems.required(&at, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(file)) => paths::validate_descending(file, &at, problems),
        (_, Some(_)) => {
            problems.invalid(
                &at,
                profile,
                "can only be set when seccomp type is Localhost",
            );
        }
        (_, None) => {}
    }
}

fn validate_app_armor(profile: Option<&AppArmorProfile>, path: &Path<'_>, problems: &mut Problems) {
    let Some(profile) = profile else {
        return;
    };
    validate_profile_type(&profile.r#type, "appArmorProfile", path, problems);
    let at = path.field("localhostProfile");
    match (
        profile.r#type.as_str(),
        profile.localhost_profile.as_deref(),
    ) {
        ("Localhost", None | Some("")) => {
            problems.required(&at, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                problems.invalid(&at, name, "must not be padded with whitespace");
            }
            if name.len() > PATH_MAX {
                problems.too_long(&at, PATH_MAX);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            problems.invalid(&at, name, "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

fn validate_profile_type(r#type: &str, field: &str, path: &Path<'_>, problems: &mut Problems) {
    let at = path.field("type");
    match r#type {
        "" => problems.required(&at, &format!("type is required when {field} is set")),
        other => problems.one_of(&at, other, PROFILES),
    }
}

fn validate_sysctls(
    spec: &PodSpec,
    context: &PodSecurityContext,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, sysctl) in context.sysctls.iter().enumerate() {
        let entry = path.index(index);
        let (at, name) = (entry.field("name"), sysctl.name.as_str());
        if name.is_empty() {
            problems.required(&at, "");
        } else if !is_sysctl(name) {
            let detail = format!(
                "must have at most {SYSCTL_MAX} characters and match regex \
                ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            problems.invalid(&at, name, detail);
        } else if !seen.insert(name) {
            problems.duplicate(&at, name);
        }
        let name = name.replace('/', ".");
        let of_network = name.starts_with("net.");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || name == "kernel.sem";
        if spec.host_network && of_network {
            let detail = "may not be specified when 'hostNetwork' is true";
            problems.invalid(&at, &sysctl.name, detail);
        } else if spec.host_ipc && of_ipc {
            let detail = "may not be specified when 'hostIPC' is true";
            problems.invalid(&at, &sysctl.name, detail);
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
