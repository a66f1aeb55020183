//! The fields of a Pod's spec and of its security context.

use setpoint_proto::core::{
    AppArmorProfile, PodSecurityContext, PodSpec, SeLinuxOptions, SeccompProfile,
};

use super::{Row, Support};

pub const POD: &[Row<PodSpec>] = &[
    Row::obeyed("volumes"),
    Row::obeyed("containers"),
    Row::obeyed("initContainers"),
    Row::obeyed("restartPolicy"),
    Row::obeyed("terminationGracePeriodSeconds"),
    Row::obeyed("activeDeadlineSeconds"),
    Row::obeyed("securityContext"),
    Row::obeyed("readinessGates"),
    Row::obeyed("overhead"),
    // The scheduler's and the gateway's.
    Row::obeyed("nodeSelector"),
    Row::obeyed("nodeName"),
    Row::obeyed("affinity"),
    Row::obeyed("schedulerName"),
    Row::obeyed("tolerations"),
    Row::obeyed("topologySpreadConstraints"),
    Row::obeyed("schedulingGates"),
    Row::obeyed("schedulingGroup"),
    Row::obeyed("priorityClassName"),
    Row::obeyed("priority"),
    Row::obeyed("preemptionPolicy"),
    Row::obeyed("evictionResponders"),
    Row::obeyed("serviceAccountName"),
    Row::obeyed("serviceAccount"),
    // On unless it is switched off, so that its membership says nothing; no Services are served yet.
    Row::obeyed("enableServiceLinks"),
    Row::by_engine("hostname", |spec| !spec.hostname.is_empty()),
    Row::by_processes("hostNetwork", |spec| spec.host_network),
    Row::by_processes("hostPID", |spec| spec.host_pid),
    Row::by_processes("hostIPC", |spec| spec.host_ipc),
    Row::by_processes("shareProcessNamespace", |spec| {
        spec.share_process_namespace == Some(true)
    }),
    Row::ignored("dnsPolicy[None]", |spec| spec.dns_policy == "None"),
    Row::ignored("dnsConfig", |spec| spec.dns_config.is_some()),
    Row::ignored("imagePullSecrets", |spec| {
        !spec.image_pull_secrets.is_empty()
    }),
    Row::ignored("subdomain", |spec| !spec.subdomain.is_empty()),
    Row::ignored("hostAliases", |spec| !spec.host_aliases.is_empty()),
    Row::ignored("ephemeralContainers", |spec| {
        !spec.ephemeral_containers.is_empty()
    }),
    Row::ignored("setHostnameAsFQDN", |spec| {
        spec.set_hostname_as_fqdn == Some(true)
    }),
    Row::ignored("hostnameOverride", |spec| spec.hostname_override.is_some()),
    Row::ignored("automountServiceAccountToken", |spec| {
        spec.automount_service_account_token == Some(true)
    }),
    Row::ignored("resources", |spec| {
        spec.resources
            .as_ref()
            .is_some_and(|resources| !resources.limits.is_empty())
    }),
    Row::refused("hostUsers", |spec| spec.host_users == Some(false)),
    Row::refused("os", |spec| {
        spec.os.as_ref().is_some_and(|os| os.name != "linux")
    }),
    Row::refused("runtimeClassName", |spec| {
        spec.runtime_class_name
            .as_ref()
            .is_some_and(|name| !name.is_empty())
    }),
    Row::refused("resourceClaims", |spec| !spec.resource_claims.is_empty()),
];

pub const SECURITY: &[Row<PodSecurityContext>] = &[
    Row::obeyed("runAsUser"),
    Row::obeyed("runAsNonRoot"),
    Row::obeyed("runAsGroup"),
    Row::obeyed("supplementalGroups"),
    Row::obeyed("fsGroup"),
    // Volumes begin empty, so both policies come to the same.
    Row::obeyed("fsGroupChangePolicy"),
    Row::new(
        "supplementalGroupsPolicy[Strict]",
        |context| context.supplemental_groups_policy.as_deref() == Some("Strict"),
        Support::Refused,
        Support::Obeyed,
    ),
    Row::ignored("sysctls", |context| !context.sysctls.is_empty()),
    Row::ignored("windowsOptions", |context| {
        context.windows_options.is_some()
    }),
    Row::ignored("seLinuxOptions", |context| {
        labels(context.se_linux_options.as_ref())
    }),
    Row::ignored("seLinuxChangePolicy", |context| {
        context.se_linux_change_policy.is_some()
    }),
    Row::by_engine("seccompProfile[RuntimeDefault]", |context| {
        seccomp(context.seccomp_profile.as_ref()) == "RuntimeDefault"
    }),
    // An engine confines all the same, which is more than was asked for.
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

/// Returns the type of a profile; empty without one.
pub fn seccomp(profile: Option<&SeccompProfile>) -> &str {
    profile.map_or("", |profile| profile.r#type.as_str())
}

/// Returns the type of a profile; empty without one.
pub fn app_armor(profile: Option<&AppArmorProfile>) -> &str {
    profile.map_or("", |profile| profile.r#type.as_str())
}

pub fn labels(options: Option<&SeLinuxOptions>) -> bool {
    options.is_some_and(|options| *options != SeLinuxOptions::default())
}
