//! Starts the processes of a cluster.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use setpoint_ctl::launcher::{ProcessSpec, address, command, program, topology};

use super::{Cluster, plain, removal};
use crate::{Process, WallClock};

const MANAGER: &str = "controller-manager";
/// The number of the process of [`Cluster::start_housekeeping`]. Those that tests start have lower ones.
const HOUSEKEEPER: usize = 9;
const HOUSEKEEPING: &str =
    "garbage-collector,resourcequota,serviceaccount,root-ca-certificate-publisher";

impl Cluster {
    /// Starts etcd with the data of an earlier start, if any.
    pub fn start_etcd(&mut self) {
        self.launch(topology::etcd(&self.state, &self.spec), &[]);
    }

    /// Starts the first gateway.
    pub fn start_gateway(&mut self) {
        self.start_gateway_at(0);
    }

    /// Starts `gateway-<n>`.
    pub fn start_gateway_at(&mut self, n: usize) {
        self.start_gateway_over(n, &address(self.spec.etcd));
    }

    /// Starts `gateway-<n>` with this address of etcd.
    pub fn start_gateway_over(&mut self, n: usize, etcd: &str) {
        let gateway = topology::gateway(&self.state, &self.spec, n, etcd);
        let gateway = gateway.args(removal::gateway_flags());
        self.launch(gateway.args(self.gateway_flags.clone()), &[]);
    }

    /// Starts `<service>-<n>`, which connects to all gateways.
    pub fn service(&mut self, service: &'static str, n: usize, flags: &[String]) {
        self.service_through(&self.gateway_urls(), service, n, flags);
    }

    /// Starts the controllers that most Pods and owners need: namespaces get accounts and CA bundles, and garbage is
    /// collected.
    pub fn start_housekeeping(&mut self) {
        let files = self.state.pki().files(&format!("{MANAGER}-{HOUSEKEEPER}"));
        let ca = files.ca_file.display().to_string();
        let flags = ["--controllers", HOUSEKEEPING, topology::ROOT_CA_FLAG, &ca];
        self.service(MANAGER, HOUSEKEEPER, &flags.map(str::to_owned));
    }

    /// Starts `<service>-<n>` with these addresses of the gateways.
    pub fn service_through(
        &mut self,
        gateways: &str,
        service: &'static str,
        n: usize,
        flags: &[String],
    ) {
        let process = self.spec_of(service, n, flags).client_of(gateways);
        self.launch(process, &[]);
    }

    /// Starts `<service>-<n>`, which uses this wall clock.
    pub fn service_by(
        &mut self,
        clock: &WallClock,
        service: &'static str,
        n: usize,
        flags: &[String],
    ) {
        let process = self.spec_of(service, n, flags);
        let process = process.client_of(&self.gateway_urls());
        let name = process.name.clone();
        self.launch(process, &clock.environment());
        WallClock::clear_up(self, &name);
    }

    /// Starts the process that renews certificates, with this wall clock.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_certs(&mut self, clock: &WallClock) {
        let name = "certs-0";
        let log = File::create(self.state.log(name)).expect("it is writable");
        let mut command = Command::new(program("setpoint").expect("build the workspace first"));
        command
            .args(["certs", "--renew", "--state"])
            .arg(self.directory())
            .envs(clock.environment())
            .stdout(log);
        let started = Process::start(command);
        self.processes.insert(name.to_owned(), started);
        WallClock::clear_up(self, name);
    }

    /// Returns `<service>-<n>` with these flags. The identity of an agent is that of its nodes.
    fn spec_of(&self, service: &'static str, n: usize, flags: &[String]) -> ProcessSpec {
        let value = |name: &str| {
            let mut words = flags.iter().skip_while(|flag| *flag != name);
            words.nth(1).map(String::as_str)
        };
        let process = match (service, value("--node-name")) {
            ("node-agent", Some(node)) => {
                let count = value("--nodes").and_then(|count| count.parse().ok());
                topology::agent(&self.state, n, node, count.unwrap_or(1))
            }
            _ => ProcessSpec::new(&self.state, service, n),
        };
        process.args(flags.to_vec())
    }

    /// Starts a client of all gateways.
    pub(super) fn start_client(&mut self, process: ProcessSpec) {
        self.launch(process.client_of(&self.gateway_urls()), &[]);
    }

    fn launch(&mut self, mut process: ProcessSpec, environment: &[(&str, PathBuf)]) {
        let made = self.state.pki().ensure([&process]);
        made.expect("certificates can be made");
        if !self.guarded {
            plain::without_guard(&mut process);
        }
        let port = process.port.unwrap_or_default();
        let mut command = command(&self.state, &process, port)
            .unwrap_or_else(|error| panic!("build the workspace first: {error:#}"));
        command.envs(environment.iter().cloned());
        command.envs(self.environment.iter().cloned());
        self.processes.insert(process.name, Process::start(command));
    }
}
