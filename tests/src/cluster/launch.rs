//! Starts the processes of a cluster.

use super::Cluster;
use crate::{Process, WallClock};

impl Cluster {
    /// Starts etcd with the data of an earlier start, if any.
    pub fn start_etcd(&mut self) {
        let data = self.directory().join("etcd").display().to_string();
        let cluster = format!("default={}", self.peer);
        let flags = [
            ("--data-dir", data.as_str()),
            ("--listen-client-urls", &self.etcd),
            ("--advertise-client-urls", &self.etcd),
            ("--listen-peer-urls", &self.peer),
            ("--initial-advertise-peer-urls", &self.peer),
            ("--initial-cluster", &cluster),
            ("--log-level", "warn"),
        ];
        let flags = flags
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]);
        let command = std::iter::once("etcd".to_owned()).chain(flags).collect();
        let process = Process::start(self.directory.path(), "etcd", command);
        self.processes.insert("etcd".to_owned(), process);
    }

    /// Starts the first gateway.
    pub fn start_gateway(&mut self) {
        self.start_gateway_at(0);
    }

    /// Starts `gateway-<n>`.
    pub fn start_gateway_at(&mut self, n: usize) {
        let etcd = self.etcd.clone();
        self.start_gateway_over(n, &etcd);
    }

    /// Starts `gateway-<n>` with this address of etcd.
    pub fn start_gateway_over(&mut self, n: usize, etcd: &str) {
        let name = format!("gateway-{n}");
        let flags = [
            "--instance",
            &name,
            "--etcd-endpoints",
            etcd,
            "--listen",
            &self.gateways[n],
        ];
        let flags = flags.map(str::to_owned).into_iter();
        let flags = flags.chain(self.gateway_flags.iter().cloned());
        let command = self.program("gateway").chain(flags).collect();
        let process = Process::start(self.directory.path(), &name, command);
        self.processes.insert(name, process);
    }

    /// Starts a service that connects to all gateways.
    pub fn service(&mut self, name: &str, service: &str, flags: &[String]) {
        self.service_through(&self.gateway_urls(), name, service, flags);
    }

    /// Starts a service with these addresses of the gateways.
    pub fn service_through(&mut self, gateway: &str, name: &str, service: &str, flags: &[String]) {
        let program = self.program(service);
        self.launch(program, gateway, name, flags);
    }

    /// Starts a service that uses this wall clock.
    pub fn service_by(&mut self, clock: &WallClock, name: &str, service: &str, flags: &[String]) {
        let environment = clock.environment().into_iter();
        let program = ["env".to_owned()].into_iter().chain(environment);
        let program = program.chain([binary(service)]);
        let gateways = self.gateway_urls();
        self.launch(program, &gateways, name, flags);
        WallClock::clear_up(self.process(name));
    }

    fn launch(
        &mut self,
        program: impl Iterator<Item = String>,
        gateway: &str,
        name: &str,
        flags: &[String],
    ) {
        let common = ["--instance", name, "--gateway-address", gateway].map(str::to_owned);
        let command = program.chain(common).chain(flags.iter().cloned());
        let process = Process::start(self.directory.path(), name, command.collect());
        self.processes.insert(name.to_owned(), process);
    }

    /// Returns the command that starts a service in the cluster's environment.
    fn program(&self, service: &str) -> impl Iterator<Item = String> + use<> {
        let environment = self.environment.clone().into_iter();
        let env = (!self.environment.is_empty()).then(|| "env".to_owned());
        env.into_iter().chain(environment).chain([binary(service)])
    }

    pub(super) fn agent(&mut self, n: usize, flags: &[String]) {
        let name = format!("node-agent-{n}");
        let state = self.directory().join(&name).display().to_string();
        let own = ["--node-name", &format!("node-{n}"), "--state-dir", &state].map(str::to_owned);
        let flags: Vec<_> = own.iter().chain(flags).cloned().collect();
        self.service(&name, "node-agent", &flags);
    }
}

/// Returns flags with which a crashed leader is replaced within three seconds.
pub fn fast_election() -> Vec<String> {
    election("2s", "1400ms")
}

/// Returns flags for an election with this lease duration and renew deadline; the retry period is that of
/// [`fast_election`].
pub fn election(lease_duration: &str, renew_deadline: &str) -> Vec<String> {
    let flags = [
        ("--election-lease-duration", lease_duration),
        ("--election-renew-deadline", renew_deadline),
        ("--election-retry-period", "300ms"),
    ];
    let flags = flags
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]);
    flags.collect()
}

/// Returns the path of a binary of this workspace, in `target/<profile>`: the directory of the benchmark's program, or the
/// parent of the test's (`deps`).
pub(crate) fn binary(name: &str) -> String {
    let own = std::env::current_exe().expect("a test is a file");
    let mut directories = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(name));
    let path = directories.find(|path| path.is_file());
    let path = path.unwrap_or_else(|| panic!("no binary {name}: build the workspace first"));
    path.display().to_string()
}
