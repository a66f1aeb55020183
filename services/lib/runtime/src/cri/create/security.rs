//! The security context of a container.

use std::path::Path;

use k8s_cri::v1::security_profile::ProfileType;
use k8s_cri::v1::{
    Capability, Int64Value, LinuxContainerSecurityContext, NamespaceOption, SecurityProfile,
    SupplementalGroupsPolicy,
};

use crate::{Profile, Security};

/// The paths that containers do not see, as the kubelet's for `procMount: Default`.
const MASKED_PATHS: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
/// The paths that containers may only read, as the kubelet's for `procMount: Default`.
const READONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Returns the security context of a container. `image_user` is the user of its image, if it must be named;
/// `seccomp_root` has the seccomp profiles of the node.
pub fn context(
    security: &Security,
    image_user: Option<i64>,
    namespaces: NamespaceOption,
    seccomp_root: &Path,
) -> LinuxContainerSecurityContext {
    let owned = |paths: &[&str]| paths.iter().map(ToString::to_string).collect();
    let id = |value: Option<i64>| value.map(|value| Int64Value { value });
    let groups = match security.strict_groups {
        true => SupplementalGroupsPolicy::Strict,
        false => SupplementalGroupsPolicy::Merge,
    };
    LinuxContainerSecurityContext {
        capabilities: Some(Capability {
            add_capabilities: security.add.clone(),
            drop_capabilities: security.drop.clone(),
            ..Capability::default()
        }),
        namespace_options: Some(namespaces),
        // A group is only accepted beside a user.
        run_as_user: id(security.run_as_user.or(image_user)),
        run_as_group: id(security.run_as_group),
        privileged: security.privileged,
        readonly_rootfs: security.read_only,
        supplemental_groups: security.supplemental_groups.clone(),
        supplemental_groups_policy: groups.into(),
        no_new_privs: security.no_new_privileges,
        masked_paths: owned(&MASKED_PATHS),
        readonly_paths: owned(&READONLY_PATHS),
        seccomp: Some(seccomp(&security.seccomp_profile, seccomp_root)),
        apparmor: app_armor(&security.app_armor_profile),
        ..LinuxContainerSecurityContext::default()
    }
}

/// Returns the runtime's own profile.
pub fn default_profile() -> SecurityProfile {
    profile(ProfileType::RuntimeDefault, String::new())
}

fn profile(kind: ProfileType, localhost_ref: String) -> SecurityProfile {
    SecurityProfile {
        profile_type: kind.into(),
        localhost_ref,
    }
}

/// Returns the profile for seccomp: the runtime's own for containers without one, which is stricter than none.
fn seccomp(wanted: &Profile, root: &Path) -> SecurityProfile {
    match wanted {
        Profile::Unset | Profile::RuntimeDefault => default_profile(),
        Profile::Unconfined => profile(ProfileType::Unconfined, String::new()),
        Profile::Localhost(file) => {
            let path = root.join(file).display().to_string();
            profile(ProfileType::Localhost, path)
        }
    }
}

/// Returns the profile for AppArmor; `None` for that which the runtime has for containers without one.
fn app_armor(wanted: &Profile) -> Option<SecurityProfile> {
    match wanted {
        Profile::Unset => None,
        Profile::RuntimeDefault => Some(default_profile()),
        Profile::Unconfined => Some(profile(ProfileType::Unconfined, String::new())),
        Profile::Localhost(name) => Some(profile(ProfileType::Localhost, name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_the_profiles_that_its_spec_names() {
        let local = Profile::Localhost("web/a.json".into());
        let (default, unconfined, localhost) = (
            ProfileType::RuntimeDefault,
            ProfileType::Unconfined,
            ProfileType::Localhost,
        );
        for (wanted, seccomp, app_armor) in [
            (Profile::Unset, (default, ""), None),
            (Profile::RuntimeDefault, (default, ""), Some((default, ""))),
            (
                Profile::Unconfined,
                (unconfined, ""),
                Some((unconfined, "")),
            ),
            (
                local,
                (localhost, "/profiles/web/a.json"),
                Some((localhost, "web/a.json")),
            ),
        ] {
            let security = Security {
                seccomp_profile: wanted.clone(),
                app_armor_profile: wanted,
                ..Security::default()
            };
            let namespaces = NamespaceOption::default();
            let context = context(&security, None, namespaces, Path::new("/profiles"));
            let pair =
                |profile: &SecurityProfile| (profile.profile_type(), profile.localhost_ref.clone());
            let owned = |(kind, path): (ProfileType, &str)| (kind, path.to_owned());
            assert_eq!(context.seccomp.as_ref().map(pair), Some(owned(seccomp)));
            assert_eq!(context.apparmor.as_ref().map(pair), app_armor.map(owned));
        }
    }
}
