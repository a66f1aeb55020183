//! The fields of the security contexts of Pods and containers.

use setpoint_proto::core::{
    AppArmorProfile, PodSecurityContext, SeLinuxOptions, SeccompProfile, SecurityContext,
};

use super::{Row, Support};

/// A security context, with the fields that Pods and containers have in common.
pub trait Context {
    /// Returns whether `windowsOptions` is set.
    fn has_windows_options(&self) -> bool;
    /// Returns `seLinuxOptions`.
    fn se_linux_options(&self) -> Option<&SeLinuxOptions>;
    /// Returns `seccompProfile`.
    fn seccomp_profile(&self) -> Option<&SeccompProfile>;
    /// Returns `appArmorProfile`.
    fn app_armor_profile(&self) -> Option<&AppArmorProfile>;
}

macro_rules! context {
    ($($message:ident)*) => {
        $(impl Context for $message {
            fn has_windows_options(&self) -> bool {
                self.windows_options.is_some()
            }

            fn se_linux_options(&self) -> Option<&SeLinuxOptions> {
                self.se_linux_options.as_ref()
            }

            fn seccomp_profile(&self) -> Option<&SeccompProfile> {
                self.seccomp_profile.as_ref()
            }

            fn app_armor_profile(&self) -> Option<&AppArmorProfile> {
                self.app_armor_profile.as_ref()
            }
        })*
    };
}
context! { PodSecurityContext SecurityContext }

/// Returns the rows of the fields that Pods and containers have in common.
pub fn shared<T: Context>() -> [Row<T>; 11] {
    [
        Row::supported("runAsUser"),
        Row::supported("runAsNonRoot"),
        Row::supported("runAsGroup"),
        Row::ignored("windowsOptions", T::has_windows_options),
        Row::ignored("seLinuxOptions", |context| {
            let options = context.se_linux_options();
            options.is_some_and(|options| *options != SeLinuxOptions::default())
        }),
        Row::docker_only("seccompProfile[RuntimeDefault]", |context| {
            seccomp(context) == "RuntimeDefault"
        }),
        // A Docker engine's default profile still applies, which is stricter than requested.
        Row::not_docker("seccompProfile[Unconfined]", |context| {
            seccomp(context) == "Unconfined"
        }),
        Row::refused("seccompProfile[Localhost]", |context: &T| {
            seccomp(context) == "Localhost"
        })
        .with_cri(Support::Supported),
        Row::new(
            "appArmorProfile[RuntimeDefault]",
            |context| app_armor(context) == "RuntimeDefault",
            Support::IfPossible,
            Support::Refused,
        ),
        Row::not_docker("appArmorProfile[Unconfined]", |context| {
            app_armor(context) == "Unconfined"
        }),
        Row::refused("appArmorProfile[Localhost]", |context: &T| {
            app_armor(context) == "Localhost"
        })
        .with_cri(Support::IfPossible),
    ]
}

/// The fields of a Pod's security context only.
pub const POD: &[Row<PodSecurityContext>] = &[
    Row::supported("supplementalGroups"),
    Row::supported("fsGroup"),
    // Volumes are empty when created, so both policies have the same effect.
    Row::supported("fsGroupChangePolicy"),
    Row::new(
        "supplementalGroupsPolicy[Strict]",
        |context: &PodSecurityContext| {
            context.supplemental_groups_policy.as_deref() == Some("Strict")
        },
        Support::Refused,
        Support::Supported,
    )
    .with_cri(Support::IfPossible),
    Row::networks_only("sysctls[net]", |context| has_sysctl(context, true)),
    Row::docker_only("sysctls[kernel]", |context| has_sysctl(context, false)),
    Row::ignored("seLinuxChangePolicy", |context| {
        context.se_linux_change_policy.is_some()
    }),
];

/// The fields of a container's security context only.
pub const CONTAINER: &[Row<SecurityContext>] = &[
    Row::supported("allowPrivilegeEscalation"),
    // Denied capabilities are listed individually as well.
    Row::docker_only("capabilities", |context| {
        context
            .capabilities
            .as_ref()
            .is_some_and(|changes| !changes.add.is_empty() || !changes.drop.is_empty())
    }),
    Row::ignored("privileged", |context: &SecurityContext| {
        context.privileged == Some(true)
    })
    .with_cri(Support::Supported),
    Row::docker_only("readOnlyRootFilesystem", |context| {
        context.read_only_root_filesystem == Some(true)
    }),
    Row::ignored("procMount", |context| {
        context
            .proc_mount
            .as_deref()
            .is_some_and(|mount| mount != "Default")
    }),
];

/// Returns the type of the seccomp profile; empty without one.
fn seccomp(context: &impl Context) -> &str {
    let profile = context.seccomp_profile();
    profile.map_or("", |profile| profile.r#type.as_str())
}

/// Returns the type of the AppArmor profile; empty without one.
fn app_armor(context: &impl Context) -> &str {
    let profile = context.app_armor_profile();
    profile.map_or("", |profile| profile.r#type.as_str())
}

/// Returns whether a kernel parameter of networks is set, or one of others.
fn has_sysctl(context: &PodSecurityContext, of_network: bool) -> bool {
    let mut names = context.sysctls.iter().map(|sysctl| &sysctl.name);
    names.any(|name| name.starts_with("net") == of_network)
}
