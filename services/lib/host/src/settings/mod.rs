//! The settings of a process, merged from four layers: defaults, a file, environment variables, flags.

mod flags;
mod key;
mod layers;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use setpoint_telemetry::Settings as TraceSettings;

use crate::limits::Limits;
use flags::Flags;
use layers::Layers;

/// The settings of a service. Every field must have a default, which `--help` shows.
pub trait Settings: Serialize + DeserializeOwned + Default + Send + 'static {
    /// Returns a description of each setting for `--help`, `("election.lease_duration", "…")`, in one line each.
    fn describe() -> &'static [(&'static str, &'static str)];

    /// Returns the time that the service takes to stop beside that of the setting `drain`.
    fn drain(&self) -> Duration {
        Duration::ZERO
    }

    /// Checks that the settings are consistent.
    ///
    /// # Errors
    /// The reason, in one line.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The settings that all services share.
///
/// A service overrides a default by a field of the same name in its own settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Common {
    pub instance: String,
    pub listen: SocketAddr,
    pub advertise: String,
    pub log: String,
    #[serde(with = "crate::duration")]
    pub drain: Duration,
    #[serde(with = "crate::duration")]
    pub stall: Duration,
    #[serde(with = "crate::duration")]
    pub request_timeout: Duration,
    pub connections: usize,
    pub allowed_hosts: Vec<String>,
    pub telemetry: Traces,
}

/// The settings of traces; the export is configured by the `OTEL_*` variables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Traces {
    #[serde(with = "crate::duration")]
    pub trace_age: Duration,
    pub noop_rounds: bool,
}

impl Traces {
    pub(crate) const fn settings(&self) -> TraceSettings {
        TraceSettings {
            trace_age: self.trace_age,
            noop_rounds: self.noop_rounds,
        }
    }
}

impl From<TraceSettings> for Traces {
    fn from(settings: TraceSettings) -> Self {
        Self {
            trace_age: settings.trace_age,
            noop_rounds: settings.noop_rounds,
        }
    }
}

impl Common {
    fn of(service: &str) -> Self {
        let limits = Limits::default();
        Self {
            instance: format!("{service}-{}", hostname()),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            advertise: String::new(),
            log: "info".to_owned(),
            drain: Duration::from_secs(10),
            stall: limits.stall,
            request_timeout: limits.request,
            connections: limits.connections,
            allowed_hosts: vec!["localhost".to_owned()],
            telemetry: Traces::from(TraceSettings::default()),
        }
    }

    /// Returns the limits on clients.
    pub(crate) fn limits(&self) -> Limits {
        let own = [hostname(), self.advertise.clone()];
        Limits {
            stall: self.stall,
            request: self.request_timeout,
            connections: self.connections,
            hosts: own.into_iter().chain(self.allowed_hosts.clone()).collect(),
            ..Limits::default()
        }
    }

    const DESCRIBE: &[(&str, &str)] = &[
        ("instance", "Name of this replica"),
        (
            "listen",
            "Address and port to listen on; port 0 picks a free port",
        ),
        (
            "advertise",
            "Host or IP at which others reach this process; the listen address if empty",
        ),
        (
            "log",
            "Log filter, for example info or info,setpoint_controller=debug",
        ),
        ("drain", "Time for running work to end at shutdown"),
        (
            "stall",
            "Time after which a client that reads nothing is disconnected",
        ),
        (
            "request_timeout",
            "Timeout of requests; watches and logs must have started by then",
        ),
        (
            "connections",
            "Maximum number of open connections; at most 3/8 of the open files limit",
        ),
        (
            "allowed_hosts",
            "Accepted names in the Host header, in addition to IPs and its own names; * for any",
        ),
        (
            "telemetry.trace_age",
            "Age after which a trace is not continued; a new trace with a link to it is started",
        ),
        (
            "telemetry.noop_rounds",
            "Whether to export spans of reconciles without actions",
        ),
    ];
}

/// Returns the host name in lower case, as names of objects must be; `0` if the machine has none.
fn hostname() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    match name.to_string_lossy().to_lowercase() {
        name if name.is_empty() => "0".to_owned(),
        name => name,
    }
}

/// Descriptions of settings that several services have. A service's own description takes precedence.
const SHARED: &[(&str, &str)] = &[
    (
        "gateway.address",
        "URL of the gateway; comma-separated if there are several",
    ),
    (
        "gateway.timeout",
        "Timeout of calls to the gateway; not applied to watches",
    ),
    (
        "election.leader_elect",
        "Whether replicas elect a leader; false if there is one replica only",
    ),
    (
        "election.lease_duration",
        "Time after the last renewal after which another replica takes over",
    ),
    (
        "election.renew_deadline",
        "Time for which a leader tries to renew before it stops, which it does at nine tenths of lease_duration at the latest",
    ),
    (
        "election.retry_period",
        "Interval at which a candidate tries to acquire the Lease; a leader renews at half of renew_deadline, or at this interval if it is longer",
    ),
    ("election.namespace", "Namespace of the Lease"),
];

/// An error in the settings, or a request for help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output of `--help` or `--version`.
    #[error("{0}")]
    HelpOrVersion(clap::builder::StyledStr),
    /// A flag that does not exist, or has no value.
    #[error("{0}; --help lists every flag")]
    Flag(String),
    /// The settings file is missing, or is not TOML.
    #[error("settings file {}: {reason}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason, in one line.
        reason: String,
    },
    /// The settings file has an unknown setting.
    #[error("settings file {}: unknown setting {key:?}", path.display())]
    Unknown {
        /// The path of the file.
        path: PathBuf,
        /// The unknown key.
        key: String,
    },
    /// A value does not have the setting's type.
    #[error("{0}")]
    Value(String),
    /// The settings are inconsistent.
    #[error("invalid settings: {0}")]
    Invalid(String),
}

/// Reads the settings of `service` from all layers and checks them.
///
/// # Errors
/// The first error, in one line.
pub(crate) fn load<S: Settings>(
    service: &'static str,
    args: impl IntoIterator<Item = OsString>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<(Common, S), Error> {
    let mut layers = Layers::new();
    layers.defaults(&Common::of(service));
    let own = layers.defaults(&S::default());
    let descriptions = descriptions::<S>();
    let flags = Flags::parse(service, layers.keys(), &descriptions, args)?;
    layers.file(service, flags.file())?;
    layers.environment(env);
    layers.flags(&flags);

    let merged = layers.merge()?;
    let common: Common = merged.read(None)?;
    let settings: S = merged.read(Some(&own))?;
    settings.validate().map_err(Error::Invalid)?;
    Ok((common, settings))
}

/// Returns all descriptions; of several for one setting the first applies.
fn descriptions<S: Settings>() -> Vec<(&'static str, &'static str)> {
    [S::describe(), Common::DESCRIBE, SHARED].concat()
}

/// Returns the settings of `S` without a description; the tests of each service assert that there are none.
pub fn undescribed<S: Settings>() -> Vec<String> {
    let mut layers = Layers::new();
    layers.defaults(&S::default());
    let descriptions = descriptions::<S>();
    let described = |path: &str| descriptions.iter().any(|(key, _)| *key == path);
    layers
        .keys()
        .iter()
        .map(|key| key.path().to_owned())
        .filter(|path| !described(path))
        .collect()
}
