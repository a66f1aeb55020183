//! The kernel parameters of a Pod, `securityContext.sysctls`.

use std::collections::BTreeMap;

use setpoint_proto::core::{PodSpec, Sysctl};

use crate::pod::rejection::Rejection;

/// The parameters that a Pod may set because they belong to its namespaces and affect no other Pod, as upstream. A node
/// cannot be set to allow others.
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Returns the parameters of a Pod with dots in their names.
pub fn values(spec: &PodSpec) -> BTreeMap<String, String> {
    let declared = declared(spec).iter();
    declared
        .map(|sysctl| (dotted(&sysctl.name), sysctl.value.clone()))
        .collect()
}

/// Checks that a Pod may set its parameters.
///
/// # Errors
/// The first that it may not set.
pub fn check(spec: &PodSpec) -> Result<(), Rejection> {
    for Sysctl { name, .. } in declared(spec) {
        let dotted = dotted(name);
        let shares = |namespace: bool, prefix| namespace && dotted.starts_with(prefix);
        let because = if !SAFE.contains(&dotted.as_str()) {
            "not allowlisted"
        } else if shares(spec.host_network, "net.") {
            "not allowed with host net enabled"
        } else if shares(spec.host_ipc, "kernel.shm") {
            "not allowed with host ipc enabled"
        } else {
            continue;
        };
        let message = format!("forbidden sysctl: {name:?} {because}");
        return Err(Rejection::Sysctl(message));
    }
    Ok(())
}

fn declared(spec: &PodSpec) -> &[Sysctl] {
    let context = spec.security_context.as_ref();
    context.map_or(&[], |context| &context.sysctls)
}

/// Returns a name with dots: names may be written with slashes, and dots within a part are slashes then.
fn dotted(name: &str) -> String {
    match name.find(['.', '/']).map(|at| &name[at..=at]) {
        Some("/") => name
            .chars()
            .map(|character| match character {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::PodSecurityContext;

    use super::*;

    fn spec(name: &str) -> PodSpec {
        PodSpec {
            security_context: Some(PodSecurityContext {
                sysctls: vec![Sysctl {
                    name: name.into(),
                    value: "1".into(),
                }],
                ..PodSecurityContext::default()
            }),
            ..PodSpec::default()
        }
    }

    #[test]
    fn safe_parameters_are_set_and_others_reject_the_pod_in_the_words_of_the_kubelet() {
        let allowed = |name: &str| values(&spec(name)).into_keys().next();
        for name in ["kernel.shm_rmid_forced", "kernel/shm_rmid_forced"] {
            assert_eq!(check(&spec(name)), Ok(()));
            assert_eq!(allowed(name).as_deref(), Some("kernel.shm_rmid_forced"));
        }
        assert_eq!(dotted("net/ipv4/conf/eth0.1/x"), "net.ipv4.conf.eth0/1.x");
        assert_eq!(check(&PodSpec::default()), Ok(()));
        let refused = check(&spec("kernel.msgmax"));
        let message = "forbidden sysctl: \"kernel.msgmax\" not allowlisted";
        assert_eq!(refused, Err(Rejection::Sysctl(message.into())));
    }

    #[test]
    fn parameters_of_namespaces_of_the_host_are_refused() {
        let mut network = spec("net.ipv4.tcp_rmem");
        network.host_network = true;
        let mut memory = spec("kernel.shm_rmid_forced");
        memory.host_ipc = true;
        for (spec, end) in [(network, "host net enabled"), (memory, "host ipc enabled")] {
            let rejection = check(&spec).unwrap_err();
            assert_eq!(rejection.reason(), "SysctlForbidden");
            assert!(rejection.message().ends_with(end), "{rejection:?}");
        }
    }
}
