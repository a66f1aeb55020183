//! The fields of a Pod's spec.

use setpoint_proto::core::PodSpec;

use super::{Row, Support};

pub const POD: &[Row<PodSpec>] = &[
    Row::supported("volumes"),
    Row::supported("containers"),
    Row::supported("initContainers"),
    Row::supported("restartPolicy"),
    Row::supported("terminationGracePeriodSeconds"),
    Row::supported("activeDeadlineSeconds"),
    Row::supported("securityContext"),
    Row::supported("readinessGates"),
    Row::supported("overhead"),
    // Fields for the scheduler and the gateway.
    Row::supported("nodeSelector"),
    Row::supported("nodeName"),
    Row::supported("affinity"),
    Row::supported("schedulerName"),
    Row::supported("tolerations"),
    Row::supported("topologySpreadConstraints"),
    Row::supported("schedulingGates"),
    Row::supported("schedulingGroup"),
    Row::supported("priorityClassName"),
    Row::supported("priority"),
    Row::supported("preemptionPolicy"),
    Row::supported("evictionResponders"),
    Row::supported("serviceAccountName"),
    Row::supported("serviceAccount"),
    Row::supported("enableServiceLinks"),
    Row::mounts_only("hostname", |spec| !spec.hostname.is_empty()),
    Row::not_docker("hostNetwork", |spec| spec.host_network),
    Row::not_docker("hostPID", |spec| spec.host_pid),
    Row::not_docker("hostIPC", |spec| spec.host_ipc),
    Row::supported("shareProcessNamespace"),
    Row::mounts_only("dnsPolicy[None]", |spec| spec.dns_policy == "None"),
    Row::mounts_only("dnsConfig", |spec| spec.dns_config.is_some()),
    Row::docker_only("imagePullSecrets", |spec| {
        !spec.image_pull_secrets.is_empty()
    }),
    Row::mounts_only("subdomain", |spec| !spec.subdomain.is_empty()),
    Row::mounts_only("hostAliases", |spec| !spec.host_aliases.is_empty()),
    Row::supported("ephemeralContainers"),
    Row::ignored("setHostnameAsFQDN", |spec| {
        spec.set_hostname_as_fqdn == Some(true)
    }),
    Row::ignored("hostnameOverride", |spec| spec.hostname_override.is_some()),
    Row::mounts_only("automountServiceAccountToken", |spec| {
        spec.automount_service_account_token == Some(true)
    }),
    Row::cgroups_only("resources", |spec| {
        spec.resources
            .as_ref()
            .is_some_and(|resources| !resources.limits.is_empty())
    }),
    Row::refused("hostUsers", |spec: &PodSpec| spec.host_users == Some(false))
        .with_cri(Support::IfPossible),
    // A Pod for another operating system is rejected.
    Row::supported("os"),
    Row::refused("runtimeClassName", |spec: &PodSpec| {
        spec.runtime_class_name
            .as_ref()
            .is_some_and(|name| !name.is_empty())
    })
    .with_cri(Support::Supported),
    Row::refused("resourceClaims", |spec| !spec.resource_claims.is_empty()),
];
