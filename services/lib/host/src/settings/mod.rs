//! The settings of a process, merged from four layers: defaults, a file, environment variables, flags.

mod docs;
mod extension;
mod flags;
mod key;
mod layers;
mod serving;
mod template;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, iter};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use setpoint_telemetry::Settings as TraceSettings;
use setpoint_tls::{Credentials, Files};

pub use extension::Extension;
pub use layers::{Layers, Merged};
pub use serving::Serving;
pub use template::template;

use crate::DurationText;
use crate::limits::Limits;
use flags::Flags;

/// The settings of a service, or a table of them. Every field has a default. `--help` shows it and the first paragraph
/// of the field's doc comment; the template of the settings file has the whole comment.
pub trait Settings: Serialize + DeserializeOwned + Default + JsonSchema + Send + 'static {
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

    /// Returns whether the service has an identity of its own ([`Self::identity`]), without files in the table `tls`.
    fn has_own_identity(&self) -> bool {
        false
    }

    /// Returns the process's identity, given the files of the table `tls`, once it exists. A service that knows only
    /// now who it is requests it here. Dropped when the process is to stop.
    ///
    /// # Errors
    /// Why it cannot have it.
    fn identity(
        &mut self,
        files: Files,
    ) -> impl Future<Output = anyhow::Result<Credentials>> + Send {
        async move { Ok(Credentials::load(&files)?) }
    }
}

/// No settings.
impl Settings for () {}

/// Returns the message of the first rule that does not hold.
///
/// # Errors
/// That message.
pub fn first_broken(rules: &[(bool, &str)]) -> Result<(), String> {
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, message)) => Err((*message).to_owned()),
        None => Ok(()),
    }
}

/// The settings that all services share.
///
/// A service overrides a default by a field of the same name in its own settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Common {
    /// Name of this replica.
    pub instance: String,
    /// Address and port to listen on; port 0 picks a free port.
    pub listen: SocketAddr,
    /// Further IPs to listen on, at the same port. This machine may get them later.
    #[serde(default)]
    pub listen_also: Vec<IpAddr>,
    /// Host or IP at which others reach this process; the listen address if empty.
    pub advertise: String,
    /// Log filter, for example `info` or `info,setpoint_controller=debug`.
    pub log: String,
    /// Time for running work to end at shutdown.
    #[serde(with = "DurationText")]
    pub drain: Duration,
    /// Time after which a client that reads nothing is disconnected.
    #[serde(with = "DurationText")]
    pub stall: Duration,
    /// Timeout of requests; watches and logs must have started by then.
    #[serde(with = "DurationText")]
    pub request_timeout: Duration,
    /// Maximum number of open connections; at most 3/8 of the open files limit.
    pub connections: usize,
    /// Accepted names in the Host header, in addition to IPs and its own names; * for any.
    pub allowed_hosts: Vec<String>,
    /// Settings of traces, which are exported as the `OTEL_*` variables say.
    pub telemetry: Traces,
    /// Identity of this process, for its listener and for its own connections.
    pub tls: Tls,
}

impl Common {
    /// Returns the files of the identity; `None` if the process is to listen without TLS.
    ///
    /// # Errors
    /// If some or all of them are missing, or an address that is not one of the loopback is listened on without TLS.
    pub(crate) fn identity_files(&self) -> Result<Option<Files>, Error> {
        let addresses = iter::once(self.listen.ip()).chain(self.listen_also.iter().copied());
        self.tls.files(addresses)
    }
}

/// The identity of the process.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tls {
    /// File with the certificates of the CAs to trust, in PEM; several during a change of the CA.
    ///
    /// This and the other files are read again when they change.
    pub ca_file: PathBuf,
    /// File with the certificate of this process, in PEM, followed by those of intermediate CAs.
    pub certificate_file: PathBuf,
    /// File with the private key of the certificate, in PEM.
    pub key_file: PathBuf,
    /// Whether to listen without TLS if there are no files, which a loopback address is needed for.
    ///
    /// Everything is then sent in clear text, and requests to the gateway without credentials are those of an
    /// administrator: only where nobody else reaches the port.
    pub plaintext: bool,
}

impl Tls {
    /// Returns the files of the identity; `None` if the process is to listen without TLS.
    ///
    /// # Errors
    /// If some or all of them are missing, or an address that is not one of the loopback is listened on without TLS.
    fn files(&self, listen: impl IntoIterator<Item = IpAddr>) -> Result<Option<Files>, Error> {
        let files = Files {
            ca_file: self.ca_file.clone(),
            certificate_file: self.certificate_file.clone(),
            key_file: self.key_file.clone(),
        };
        if files.is_empty() && self.plaintext {
            let mut listen = listen.into_iter();
            return match listen.find(|ip| !ip.to_canonical().is_loopback()) {
                None => Ok(None),
                Some(ip) => Err(Error::Invalid(format!("{PLAINTEXT}, not {ip}"))),
            };
        }
        let missing = files.is_empty() || files.validate().is_err();
        match missing {
            true => Err(Error::Invalid(NO_TLS.to_owned())),
            false => Ok(Some(files)),
        }
    }
}

const NO_TLS: &str = "tls.ca_file, tls.certificate_file and tls.key_file must be set, or tls.plaintext to listen \
                      without TLS";

const PLAINTEXT: &str = "with tls.plaintext, listen must be a loopback address";

/// The settings of traces; the export is configured by the `OTEL_*` variables.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Traces {
    /// Age after which a trace is not continued; a new trace with a link to it is started.
    #[serde(with = "DurationText")]
    pub trace_age: Duration,
    /// Whether to export spans of reconciles without actions.
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
            listen_also: Vec::new(),
            advertise: String::new(),
            log: "info".to_owned(),
            drain: Duration::from_secs(10),
            stall: limits.stall,
            request_timeout: limits.request,
            connections: limits.connections,
            allowed_hosts: vec!["localhost".to_owned()],
            telemetry: Traces::from(TraceSettings::default()),
            tls: Tls::default(),
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
}

/// Returns the host name in lower case, as names of objects must be; `0` if the machine has none.
fn hostname() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    match name.to_string_lossy().to_lowercase() {
        name if name.is_empty() => "0".to_owned(),
        name => name,
    }
}

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

/// Returns the settings of `service` as [`crate::run()`] will read them, for what must be decided before its runtime
/// starts; `None` if they are wrong, or if something else is asked for, which `run` then answers.
pub fn peek<S: Settings>(service: &'static str) -> Option<S> {
    let loaded = load::<S, _>(service, &(), env::args_os(), |name| env::var(name).ok());
    loaded.ok().map(|(_, settings, ())| settings)
}

/// Reads the settings of `service`, and those of an extension, from all layers and checks them.
///
/// # Errors
/// The first error, in one line.
pub(crate) fn load<S: Settings, E: Extension>(
    service: &'static str,
    extension: &E,
    args: impl IntoIterator<Item = OsString>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<(Common, S, E::Settings), Error> {
    let mut layers = Layers::of::<S>(&Common::of(service), extension);
    let flags = Flags::parse(service, &layers, args)?;
    layers.file(service, flags.file())?;
    layers.environment(env);
    layers.flags(&flags);

    let merged = layers.merge()?;
    Ok((merged.common()?, merged.fields()?, extension.read(&merged)?))
}
