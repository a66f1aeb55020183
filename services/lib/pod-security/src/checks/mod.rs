//! The checks, under upstream's names, with the versions since which they are as they are.
//!
//! A check of `restricted` may override one of `baseline` that asks for less; else a restricted Pod must pass both.

mod app_armor;
mod capabilities;
mod host;
mod privileges;
mod proc_mount;
mod se_linux;
mod seccomp;
mod sysctls;
mod user;
mod volumes;

use setpoint_proto::core::PodSpec;
use setpoint_proto::meta::ObjectMeta;

use crate::{Level, Violation};

/// The newest minor version with a revision of a check.
pub(crate) const NEWEST: i64 = 35;

/// Returns what of a Pod a check does not allow.
pub(crate) type Run = fn(&ObjectMeta, &PodSpec) -> Option<Violation>;

/// A check.
pub struct Check {
    /// Upstream's name of it.
    pub name: &'static str,
    /// The level that it belongs to. Checks of `baseline` are a part of `restricted`, too.
    pub level: Level,
    /// The name of the check of `baseline` that it stands for in `restricted`, from its first version on.
    overrides: Option<&'static str>,
    /// The minor versions since which it is as its functions say, in ascending order.
    revisions: &'static [(i64, Run)],
}

impl Check {
    /// Returns the minor versions with which its revisions begin.
    pub fn since(&self) -> impl Iterator<Item = i64> {
        self.revisions.iter().map(|(since, _)| *since)
    }

    /// Returns its revision in a version; `None` before the first.
    fn at(&self, minor: i64) -> Option<Run> {
        let known = self.revisions.iter().rev();
        let mut known = known.filter(|(since, _)| *since <= minor);
        known.next().map(|(_, run)| *run)
    }
}

const fn baseline(name: &'static str, revisions: &'static [(i64, Run)]) -> Check {
    Check {
        name,
        level: Level::Baseline,
        overrides: None,
        revisions,
    }
}

const fn restricted(name: &'static str, revisions: &'static [(i64, Run)]) -> Check {
    Check {
        level: Level::Restricted,
        ..baseline(name, revisions)
    }
}

const fn overriding(
    overridden: &'static str,
    name: &'static str,
    revisions: &'static [(i64, Run)],
) -> Check {
    Check {
        overrides: Some(overridden),
        ..restricted(name, revisions)
    }
}

/// All checks, in the order in which their violations are listed: by level, then by the bytes of their names.
pub const ALL: &[Check] = &[
    baseline("appArmorProfile", &[(0, app_armor::profiles)]),
    baseline("capabilities_baseline", &[(0, capabilities::baseline)]),
    baseline("hostNamespaces", &[(0, host::namespaces)]),
    baseline("hostPathVolumes", &[(0, volumes::host_paths)]),
    baseline("hostPorts", &[(0, host::ports)]),
    baseline("hostProbesAndHostLifecycle", &[(34, host::probes)]),
    baseline("privileged", &[(0, privileges::privileged)]),
    baseline(
        "procMount",
        &[(0, proc_mount::always), (35, proc_mount::of_host_users)],
    ),
    baseline(
        "seLinuxOptions",
        &[(0, se_linux::since_0), (31, se_linux::since_31)],
    ),
    baseline(
        "seccompProfile_baseline",
        &[(0, seccomp::annotations), (19, seccomp::allowed)],
    ),
    baseline(
        "sysctls",
        &[
            (0, sysctls::since_0),
            (27, sysctls::since_27),
            (29, sysctls::since_29),
            (32, sysctls::since_32),
        ],
    ),
    baseline("windowsHostProcess", &[(0, privileges::host_process)]),
    restricted(
        "allowPrivilegeEscalation",
        &[
            (8, privileges::escalation),
            (25, privileges::escalation_unless_windows),
        ],
    ),
    overriding(
        "capabilities_baseline",
        "capabilities_restricted",
        &[
            (22, capabilities::restricted),
            (25, capabilities::restricted_unless_windows),
        ],
    ),
    overriding(
        "procMount",
        "procMount_restricted",
        &[(35, proc_mount::always)],
    ),
    overriding(
        "hostPathVolumes",
        "restrictedVolumes",
        &[(0, volumes::restricted)],
    ),
    restricted(
        "runAsNonRoot",
        &[(0, user::non_root), (35, user::non_root_of_host_users)],
    ),
    restricted(
        "runAsUser",
        &[(23, user::not_zero), (35, user::not_zero_of_host_users)],
    ),
    overriding(
        "seccompProfile_baseline",
        "seccompProfile_restricted",
        &[
            (19, seccomp::required),
            (25, seccomp::required_unless_windows),
        ],
    ),
];

/// Returns the revisions of the checks of a level in a version, in the order of the checks.
pub(crate) fn of(level: Level, minor: i64) -> impl Iterator<Item = Run> {
    let of_level = ALL.iter().filter(move |check| check.level <= level);
    let applicable = of_level.filter(move |check| !is_overridden(check.name, level, minor));
    applicable.filter_map(move |check| check.at(minor))
}

fn is_overridden(name: &str, level: Level, minor: i64) -> bool {
    ALL.iter().any(|check| {
        check.overrides == Some(name) && check.level <= level && check.at(minor).is_some()
    })
}

/// Returns whether a Pod says that its nodes run Windows, where some settings do not exist.
fn is_of_windows(spec: &PodSpec) -> bool {
    spec.os.as_ref().is_some_and(|os| os.name == "windows")
}

/// Returns whether a Pod has users of its own, in a user namespace (KEP-127).
fn has_own_users(spec: &PodSpec) -> bool {
    spec.host_users == Some(false)
}
