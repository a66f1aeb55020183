//! Validation of the handlers of probes and lifecycle hooks, and of the stop signal.

use setpoint_proto::core::{
    ExecAction, GrpcAction, HttpGetAction, Lifecycle, LifecycleHandler, PodSpec, ProbeHandler,
    SleepAction, TcpSocketAction,
};
use setpoint_proto::meta::IntOrString;

use super::ports;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const SCHEMES: &[&str] = &["HTTP", "HTTPS"];
/// The signals other than the numbered real-time signals, for which see [`is_real_time`].
const SIGNALS: &[&str] = &[
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGRTMIN",
    "SIGRTMAX",
];
const WINDOWS_SIGNALS: &[&str] = &["SIGKILL", "SIGTERM"];

/// The handler of a probe or a hook: one of these fields is set.
#[derive(Default)]
struct Handler<'h> {
    exec: Option<&'h ExecAction>,
    http: Option<&'h HttpGetAction>,
    tcp: Option<&'h TcpSocketAction>,
    grpc: Option<&'h GrpcAction>,
    sleep: Option<(&'h SleepAction, Option<i64>)>,
}

/// Validates the handler of a probe.
pub fn validate_probe(handler: &ProbeHandler, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let handler = Handler {
        exec: handler.exec.as_ref(),
        http: handler.http_get.as_ref(),
        tcp: handler.tcp_socket.as_ref(),
        grpc: handler.grpc.as_ref(),
        sleep: None,
    };
    validate(&handler, path, errors);
}

/// Validates lifecycle hooks and the stop signal.
pub fn validate_lifecycle(
    lifecycle: &Lifecycle,
    spec: &PodSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let grace = spec.termination_grace_period_seconds;
    for (hook, field) in [
        (&lifecycle.post_start, "postStart"),
        (&lifecycle.pre_stop, "preStop"),
    ] {
        if let Some(hook) = hook {
            validate(&hook_handler(hook, grace), &path.field(field), errors);
        }
    }
    if let Some(signal) = &lifecycle.stop_signal {
        let os = spec.os.as_ref().map(|os| os.name.as_str());
        validate_signal(signal, os, &path.field("stopSignal"), errors);
    }
}

fn hook_handler(hook: &LifecycleHandler, grace: Option<i64>) -> Handler<'_> {
    Handler {
        exec: hook.exec.as_ref(),
        http: hook.http_get.as_ref(),
        tcp: hook.tcp_socket.as_ref(),
        grpc: None,
        sleep: hook.sleep.as_ref().map(|sleep| (sleep, grace)),
    }
}

/// Validates the first field that is set, and forbids the others.
fn validate(handler: &Handler<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let given = [
        ("exec", handler.exec.is_some()),
        ("httpGet", handler.http.is_some()),
        ("tcpSocket", handler.tcp.is_some()),
        ("grpc", handler.grpc.is_some()),
        ("sleep", handler.sleep.is_some()),
    ];
    let mut given = given.into_iter().filter(|(_, given)| *given);
    let Some((first, _)) = given.next() else {
        errors.required(path, "must specify a handler type");
        return;
    };
    validate_action(handler, &path.field(first), errors);
    for (field, _) in given {
        let detail = "may not specify more than 1 handler type";
        errors.forbidden(&path.field(field), detail);
    }
}

fn validate_action(handler: &Handler<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(exec) = handler.exec {
        if exec.command.is_empty() {
            errors.required(&path.field("command"), "");
        }
    } else if let Some(http) = handler.http {
        validate_http(http, path, errors);
    } else if let Some(tcp) = handler.tcp {
        validate_port(&tcp.port, &path.field("port"), errors);
    } else if let Some(grpc) = handler.grpc {
        ports::validate_number(grpc.port, &path.field("port"), errors);
    } else if let Some((sleep, Some(grace))) = handler.sleep
        && !(0..=grace).contains(&sleep.seconds)
    {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid(path, sleep.seconds, detail);
    }
}

fn validate_http(http: &HttpGetAction, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.not_empty(&path.field("path"), &http.path);
    validate_port(&http.port, &path.field("port"), errors);
    errors.one_of(&path.field("scheme"), http.scheme.as_str(), SCHEMES);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    for header in &http.http_headers {
        let name = header.name.as_str();
        if name.is_empty() || !name.bytes().all(plain) {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' \
                (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            errors.invalid(&path.field("httpHeaders"), name, detail);
        }
    }
}

fn validate_port(port: &IntOrString, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match port.as_str() {
        Some(name) => errors.check(path, name, ports::check_name),
        None => ports::validate_number(port.int_val, path, errors),
    }
}

fn validate_signal(signal: &str, os: Option<&str>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match os {
        None => {
            let detail = "may not be set for containers with empty `spec.os.name`";
            errors.forbidden(path, detail);
        }
        Some("windows") => errors.one_of(path, signal, WINDOWS_SIGNALS),
        Some("linux") if !is_real_time(signal) => errors.one_of(path, signal, SIGNALS),
        Some(_) => {}
    }
}

/// Returns whether the signal is one of `SIGRTMIN+1` to `SIGRTMIN+15` and `SIGRTMAX-1` to `SIGRTMAX-14`.
fn is_real_time(signal: &str) -> bool {
    let within = |prefix, most: u8| {
        let number: Option<u8> = signal
            .strip_prefix(prefix)
            .filter(|digits| !digits.starts_with(['0', '+']))
            .and_then(|digits| digits.parse().ok());
        number.is_some_and(|number| (1..=most).contains(&number))
    };
    within("SIGRTMIN+", 15) || within("SIGRTMAX-", 14)
}
