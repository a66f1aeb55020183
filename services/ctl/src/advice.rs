//! Advice about an error: the next command to try, from the error itself, from its kind, or from the subcommand.

use std::error::Error;
use std::fmt;
use std::io;

use setpoint_proto::{ApiError, Reason};

use crate::style::{Colour, Style};

/// An error with the next command to try.
#[derive(Debug)]
pub struct Advised {
    message: String,
    next: String,
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Advised {}

/// Returns an error with the next command to try.
pub fn advised(message: impl Into<String>, next: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Advised {
        message: message.into(),
        next: next.into(),
    })
}

/// Prints an error of a subcommand: on one line with all its causes, and on another the next command to try.
pub fn print(error: &anyhow::Error, command: &str) {
    let style = Style::stderr();
    eprintln!("{} {error:#}", style.paint(Colour::Red, "setpoint:"));
    eprintln!("  try: {}", next(error, command));
}

fn next(error: &anyhow::Error, command: &str) -> String {
    let known = error.chain().find_map(of_cause);
    known.unwrap_or_else(|| of_command(command).to_owned())
}

fn of_cause(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(advised) = cause.downcast_ref::<Advised>() {
        return Some(advised.next.clone());
    }
    if let Some(error) = cause.downcast_ref::<ApiError>() {
        return Some(of_reason(error.reason).to_owned());
    }
    let error = cause.downcast_ref::<io::Error>()?;
    of_system(error.kind()).map(str::to_owned)
}

/// Returns what to do about an error of a gateway.
const fn of_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unauthorized => {
            "setpoint kubeconfig --user NAME, for credentials that the cluster knows"
        }
        Reason::Forbidden => "kubectl auth can-i --list, which says what this user may do",
        Reason::NotFound => {
            "kubectl get KIND --all-namespaces, and -n NAMESPACE for another than `default`"
        }
        Reason::BadRequest | Reason::Invalid => "kubectl api-resources, for the names of kinds",
        Reason::AlreadyExists | Reason::Conflict | Reason::Expired => "the same command again",
        Reason::TooManyRequests => "the same command again in some seconds",
        Reason::RequestEntityTooLarge => "the command for fewer objects",
        Reason::MethodNotAllowed | Reason::NotAcceptable | Reason::UnsupportedMediaType => {
            "setpoint --version and kubectl version: the gateway may be another version"
        }
        Reason::InternalError | Reason::ServiceUnavailable | Reason::Timeout => {
            "setpoint status, which says what does not run"
        }
    }
}

/// Returns what to do about an error of the operating system; `None` if that depends on the command.
const fn of_system(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::PermissionDenied => {
            Some("ls -ld .setpoint, which says whose it is, or --state DIR for another directory")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some("df -h ."),
        io::ErrorKind::AddrInUse => Some("ss -ltnp, which says who listens on the port"),
        io::ErrorKind::ConnectionRefused => Some("setpoint status, which says what does not run"),
        _ => None,
    }
}

/// Returns what to do about any other error of a subcommand.
fn of_command(command: &str) -> &'static str {
    match command {
        "up" | "start" | "resume" => "setpoint status, and the logs in .setpoint/log",
        "down" | "stop" | "pause" | "status" => "setpoint status; setpoint down stops what runs",
        "certs" | "kubeconfig" => "./deploy/up, which makes what is missing of the certificates",
        "token" => "setpoint token --help",
        "join" => "setpoint token create --help on a machine of the cluster, for a new token",
        "members" => "setpoint members --help",
        "backup" => "setpoint backup --help",
        "restore" => "setpoint backup --check FILE",
        "trace" => "setpoint history KIND/NAME, which needs no Jaeger",
        "encryption" => "setpoint encryption --help",
        "completion" | "man" => "setpoint completion --help",
        _ => "setpoint status, which says what does not run",
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::cli;

    #[test]
    fn the_cause_decides_what_to_try() {
        let io = |kind| anyhow::Error::new(io::Error::from(kind));
        let api = |reason| anyhow::Error::new(ApiError::new(reason, "no"));
        for (error, command, expected) in [
            (
                advised("no cluster runs", "./deploy/up"),
                "why",
                "./deploy/up",
            ),
            (api(Reason::Forbidden), "why", "kubectl auth can-i"),
            (
                api(Reason::ServiceUnavailable),
                "leaders",
                "setpoint status",
            ),
            (
                io(io::ErrorKind::PermissionDenied),
                "up",
                "ls -ld .setpoint",
            ),
            (io(io::ErrorKind::StorageFull), "backup", "df -h"),
            (
                io(io::ErrorKind::ConnectionRefused),
                "trace",
                "setpoint status",
            ),
            (
                io(io::ErrorKind::NotFound),
                "restore",
                "setpoint backup --check",
            ),
            (anyhow!("no"), "join", "setpoint token create"),
        ] {
            for error in [next(&error, command), next(&error.context("no"), command)] {
                assert!(error.starts_with(expected), "{expected}: {error}");
            }
        }
    }

    /// A command to try is one: its first word is a program.
    #[test]
    fn every_error_names_a_command_to_try() {
        let reasons = Reason::ALL.iter().map(|reason| of_reason(*reason));
        let command = cli::command();
        let names = command.get_subcommands().map(clap::Command::get_name);
        for next in reasons.chain(names.map(of_command)) {
            let known = [
                "setpoint ",
                "kubectl ",
                "./deploy/up",
                "the same command again",
                "the command ",
            ];
            assert!(known.iter().any(|start| next.starts_with(start)), "{next}");
        }
    }
}
