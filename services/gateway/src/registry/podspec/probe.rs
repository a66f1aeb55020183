//! What a probe must say and must not.

use setpoint_proto::core::Probe;
use setpoint_proto::meta::IntOrString;

use super::ports;
use crate::registry::path::Path;
use crate::registry::problems::Problems;

/// Finds what is wrong with the probe called `name`.
pub fn validate(probe: &Probe, name: &str, path: &Path<'_>, problems: &mut Problems) {
    validate_handler(probe, path, problems);
    for (number, field) in [
        (probe.initial_delay_seconds, "initialDelaySeconds"),
        (probe.timeout_seconds, "timeoutSeconds"),
        (probe.period_seconds, "periodSeconds"),
        (probe.success_threshold, "successThreshold"),
        (probe.failure_threshold, "failureThreshold"),
    ] {
        problems.non_negative(&path.field(field), number);
    }
    // Only readiness goes to and fro; the others end with their first success.
    if name != "readinessProbe" && probe.success_threshold > 1 {
        let at = path.field("successThreshold");
        problems.invalid(&at, probe.success_threshold, "must be 1");
    }
}

fn validate_handler(probe: &Probe, path: &Path<'_>, problems: &mut Problems) {
    let handler = &probe.handler;
    let ways = [
        handler.exec.is_some(),
        handler.http_get.is_some(),
        handler.tcp_socket.is_some(),
        handler.grpc.is_some(),
    ];
    match ways.into_iter().filter(|way| *way).count() {
        0 => problems.required(path, "must specify a handler type"),
        1 => {}
        _ => problems.forbidden(path, "may not specify more than 1 handler type"),
    }
    if let Some(http) = &handler.http_get {
        validate_port(&http.port, &path.field("httpGet").field("port"), problems);
    }
    if let Some(tcp) = &handler.tcp_socket {
        validate_port(&tcp.port, &path.field("tcpSocket").field("port"), problems);
    }
    if let Some(grpc) = &handler.grpc {
        ports::validate_number(grpc.port, &path.field("grpc").field("port"), problems);
    }
    if let Some(exec) = &handler.exec
        && exec.command.is_empty()
    {
        problems.required(&path.field("exec").field("command"), "");
    }
}

fn validate_port(port: &IntOrString, path: &Path<'_>, problems: &mut Problems) {
    match port.as_str() {
        Some(name) => problems.all_invalid(path, name, ports::check_name(name)),
        None => ports::validate_number(port.int_val, path, problems),
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{ExecAction, TcpSocketAction};

    use super::*;

    fn complaints(probe: &Probe) -> String {
        let mut problems = Problems::default();
        validate(probe, "livenessProbe", &Path::root("probe"), &mut problems);
        problems.to_string()
    }

    #[test]
    fn a_probe_asks_in_exactly_one_way() {
        let mut probe = Probe::default();
        assert_eq!(
            complaints(&probe),
            "probe: Required value: must specify a handler type"
        );
        probe.handler.exec = Some(ExecAction {
            command: vec!["true".into()],
        });
        assert_eq!(complaints(&probe), "[]");
        probe.handler.tcp_socket = Some(TcpSocketAction {
            port: IntOrString::int(80),
            ..Default::default()
        });
        assert_eq!(
            complaints(&probe),
            "probe: Forbidden: may not specify more than 1 handler type"
        );
    }

    #[test]
    fn only_readiness_needs_several_successes() {
        let mut probe = Probe::default();
        probe.handler.tcp_socket = Some(TcpSocketAction {
            port: IntOrString::string("http"),
            ..Default::default()
        });
        probe.success_threshold = 2;
        assert_eq!(
            complaints(&probe),
            "probe.successThreshold: Invalid value: 2: must be 1"
        );
    }
}
