//! Kernel parameters: those that belong to the Pod alone.

use setpoint_proto::core::PodSpec;
use setpoint_proto::meta::ObjectMeta;

use crate::Violation;

/// The allowed ones, in the order of the versions since which they are.
const SAFE: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    // 1.27
    "net.ipv4.ip_local_reserved_ports",
    // 1.29
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    // 1.32
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

pub(super) fn since_0(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    check(spec, &SAFE[..5])
}

pub(super) fn since_27(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    check(spec, &SAFE[..6])
}

pub(super) fn since_29(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    check(spec, &SAFE[..10])
}

pub(super) fn since_32(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    check(spec, SAFE)
}

fn check(spec: &PodSpec, allowed: &[&str]) -> Option<Violation> {
    let context = spec.security_context.as_ref()?;
    let names = context.sysctls.iter().map(|sysctl| sysctl.name.as_str());
    let forbidden: Vec<_> = names.filter(|name| !allowed.contains(name)).collect();
    (!forbidden.is_empty()).then(|| Violation::new("forbidden sysctls", forbidden.join(", ")))
}
