//! The settings of a process, from four layers: defaults, a file, the environment, flags.

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

/// A service's own settings. Every field must have a default, and those defaults are what `--help` shows.
pub trait Settings: Serialize + DeserializeOwned + Default + Send + 'static {
    /// Returns the meaning of each setting, `("election.lease_duration", "…")`, one line each, for `--help`.
    fn describe() -> &'static [(&'static str, &'static str)];

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// The reason, in one line.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The settings of every service.
///
/// A service whose own settings have a field of the same name sets another default for it that way.
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

/// The settings of traces; their export is set by the `OTEL_*` variables.
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

    /// The limits on who calls the process.
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
        (
            "instance",
            "Which replica this is; <service>-<hostname> unless set",
        ),
        (
            "listen",
            "Address and port to listen on; port 0 picks a free one",
        ),
        (
            "advertise",
            "Host or IP at which others reach it; empty for the one it listens on",
        ),
        (
            "log",
            "What to log, for example info or info,setpoint_controller=debug",
        ),
        (
            "drain",
            "How long work under way may take once the process should stop",
        ),
        (
            "stall",
            "How long a client may take nothing of what is sent to it before it is cut off",
        ),
        (
            "request_timeout",
            "How long a request may take; watches and logs only have to begin by then",
        ),
        (
            "connections",
            "Connections open at once, at most three in four of the open files that the process may have",
        ),
        (
            "allowed_hosts",
            "Names by which clients may call it, beside its own and IPs; * for any",
        ),
        (
            "telemetry.trace_age",
            "A trace older than this is not continued: what follows begins another, with a link back",
        ),
        (
            "telemetry.noop_rounds",
            "Whether rounds that found nothing to do leave spans, too",
        ),
    ];
}

/// In lower case, as names of objects are. A machine without a name has one replica of each service.
fn hostname() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    match name.to_string_lossy().to_lowercase() {
        name if name.is_empty() => "0".to_owned(),
        name => name,
    }
}

/// What most services can be told besides; a service that describes one of these itself is listened to.
const SHARED: &[(&str, &str)] = &[
    (
        "gateway.address",
        "Where the gateway is; of several all, with commas between",
    ),
    (
        "gateway.timeout",
        "How long a call to the gateway may take; watches are not cut by it",
    ),
    (
        "election.leader_elect",
        "Whether replicas elect a leader; false for a process that runs alone",
    ),
    (
        "election.lease_duration",
        "How long after a leader's last sign of life another takes over",
    ),
    (
        "election.renew_deadline",
        "How long a leader goes on without having been able to renew",
    ),
    (
        "election.retry_period",
        "How often a leader renews, and a candidate tries again",
    ),
    ("election.namespace", "Where the Lease is"),
];

/// Settings that cannot be used, or were only asked about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is wrong: `--help` or `--version` was asked for, and this is the answer.
    #[error("{0}")]
    Asked(clap::builder::StyledStr),
    /// A flag that does not exist, or has no value.
    #[error("{0}; --help lists every flag")]
    Flag(String),
    /// The settings file is missing, or is not TOML.
    #[error("settings file {}: {why}", path.display())]
    File {
        /// Where it should be.
        path: PathBuf,
        /// The reason, in one line.
        why: String,
    },
    /// The settings file sets something that does not exist.
    #[error("settings file {}: there is no setting {key:?}", path.display())]
    Unknown {
        /// Where it is.
        path: PathBuf,
        /// The value.
        key: String,
    },
    /// A value does not have the setting's type.
    #[error("{0}")]
    Value(String),
    /// The settings do not make sense together.
    #[error("wrong settings: {0}")]
    Invalid(String),
}

/// Reads the settings of `service` from all layers and checks them.
///
/// # Errors
/// The first thing that is wrong, as one line for whoever set it.
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

/// Of two descriptions of one setting the first counts.
fn descriptions<S: Settings>() -> Vec<(&'static str, &'static str)> {
    [S::describe(), Common::DESCRIBE, SHARED].concat()
}

/// The keys of `S` that nothing describes; each service's tests assert that there are none.
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
