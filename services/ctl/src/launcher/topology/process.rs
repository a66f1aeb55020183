//! A process of a cluster, as it is to run.

use std::net::Ipv4Addr;

use crate::launcher::identity::Identity;
use crate::launcher::state_dir::StateDir;

/// A process that the cluster should have.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// The service, which is also the name of the program.
    pub service: &'static str,
    /// `<service>-<n>`.
    pub name: String,
    /// `<n>`.
    pub(super) index: usize,
    /// Arguments, without those for the name and the listen address.
    pub args: Vec<String>,
    /// The required port; `None` for any free port.
    pub port: Option<u16>,
    /// The content of its certificate; `None` for a process without one.
    pub identity: Option<Identity>,
    /// For a relay, the address at which it accepts connections for the gateways.
    pub relay_ip: Option<Ipv4Addr>,
}

impl ProcessSpec {
    /// Returns `<service>-<index>` without arguments or a certificate, on any free port.
    pub(super) fn bare(service: &'static str, index: usize) -> Self {
        Self {
            service,
            name: format!("{}-{index}", program_name(service)),
            index,
            args: Vec::new(),
            port: None,
            identity: None,
            relay_ip: None,
        }
    }

    /// Returns `<service>-<index>`, which has the identity of its service and its certificate in `state_dir`, on any
    /// free port.
    pub fn new(state_dir: &StateDir, service: &'static str, index: usize) -> Self {
        let identity = Identity::service(program_name(service));
        Self::bare(service, index).identified(state_dir, identity)
    }

    /// Returns the process with this identity, and its certificate in `state_dir`.
    pub(super) fn identified(mut self, state_dir: &StateDir, identity: Identity) -> Self {
        self.identity = Some(identity.replica(program_name(self.service), &self.name));
        let files = state_dir.pki().files(&self.name);
        self.arg("--tls-ca-file", files.ca_file.display())
            .arg("--tls-certificate-file", files.certificate_file.display())
            .arg("--tls-key-file", files.key_file.display())
    }

    pub(super) fn arg(self, flag: &str, value: impl ToString) -> Self {
        self.args([flag.to_owned(), value.to_string()])
    }

    /// Returns the process with more arguments.
    #[must_use]
    pub fn args(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.args.extend(more);
        self
    }

    /// Returns the process as a client of the gateways at these addresses, comma-separated.
    #[must_use]
    pub fn client_of(self, gateways: &str) -> Self {
        self.arg("--gateway-address", gateways)
    }

    /// Returns a gateway whose certificate has the addresses of these relays.
    pub(super) fn reached_by(mut self, relays: &[ProcessSpec]) -> Self {
        let ips = relays.iter().filter_map(|relay| relay.relay_ip);
        let ips = ips.map(|ip| ip.to_string());
        self.identity = self.identity.map(|identity| identity.reached_at(ips));
        self
    }

    pub(super) fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }
}

/// Returns the name of a service's program, which may be in a directory beside the others, such as `examples/`.
pub(super) fn program_name(service: &str) -> &str {
    service.rsplit('/').next().unwrap_or(service)
}
