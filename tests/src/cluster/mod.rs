//! A cluster of real processes on 127.0.0.1 that is stopped when dropped.

mod launch;
mod plain;
mod removal;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use setpoint_ctl::launcher::topology::{ELECTED, process_agent, simulated_agent};
use setpoint_ctl::launcher::{ClusterSpec, LOOPBACK, Pki, Profile, StateDir, address, sweep};
use tempfile::TempDir;

use crate::{Address, EtcdLog, Kubectl, Process, WallClock, eventually, free_port, invariants};
pub(crate) use removal::check_refused;

/// The log line of a gateway that has refused a request of a service.
pub const REFUSED: &str = "a request of a service is not allowed";

/// The size of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of gateways over one etcd.
    pub gateways: usize,
    /// Number of replicas of each controller and of the scheduler.
    pub replicas: usize,
    /// Number of nodes that run containers as processes, with one agent each.
    pub process_nodes: usize,
    /// Number of simulated nodes; one agent serves all of them.
    pub simulated_nodes: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            gateways: 1,
            replicas: 1,
            process_nodes: 2,
            simulated_nodes: 1,
        }
    }
}

/// Real etcd, gateways, controllers, a scheduler and node agents.
pub struct Cluster {
    state: StateDir,
    spec: ClusterSpec,
    gateway_flags: Vec<String>,
    environment: Vec<(String, String)>,
    /// Whether processes speak TLS and gateways authorize requests.
    guarded: bool,
    processes: BTreeMap<String, Process>,
    _directory: TempDir,
}

/// Returns flags with which a crashed leader is replaced within three seconds.
pub fn fast_election() -> Vec<String> {
    Profile::Fast.election()
}

impl Cluster {
    /// Starts a complete cluster with fast elections, and waits until it is ready.
    pub fn start(size: Size) -> Self {
        Self::start_with(size, &fast_election())
    }

    /// Starts a complete cluster with the default settings, and waits until it is ready.
    pub fn start_as_shipped(size: Size) -> Self {
        Self::start_with(size, &[])
    }

    /// Starts a complete cluster that exports all spans to `collector`, and waits until it is ready.
    pub fn traced(size: Size, collector: &str) -> Self {
        Self::with_environment(size, ("OTEL_EXPORTER_OTLP_ENDPOINT", collector))
    }

    /// Starts a complete cluster with this variable in the environment of each service.
    pub fn with_environment(size: Size, variable: (&str, &str)) -> Self {
        Self::with_environments(size, &[variable])
    }

    /// Starts a complete cluster with these variables in the environment of each service.
    pub fn with_environments(size: Size, variables: &[(&str, &str)]) -> Self {
        let mut cluster = Self::without_etcd();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        cluster.environment = variables.iter().map(owned).collect();
        cluster.fill(size, &fast_election())
    }

    /// Starts a complete cluster whose processes, but for etcd, have this wall clock. Their certificates are not
    /// renewed before [`Self::start_certs`].
    pub fn by_clock(size: Size, clock: &WallClock) -> Self {
        let variables = clock.environment();
        let variables = variables.map(|(name, value)| (name, value.display().to_string()));
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut cluster = Self::with_environments(size, &variables);
        for name in cluster.process_names() {
            // Programs in Go do not load libraries.
            if name != "etcd-0" {
                WallClock::clear_up(&mut cluster, &name);
            }
        }
        cluster
    }

    /// Starts a complete cluster without TLS and without authorization, for comparison, and waits until it is ready.
    pub fn without_guard(size: Size) -> Self {
        let mut cluster = Self::without_etcd();
        cluster.guarded = false;
        cluster.fill(size, &fast_election())
    }

    /// Starts a complete cluster with these flags of the gateways, and waits until it is ready.
    pub fn with_gateway_flags(size: Size, flags: &[&str]) -> Self {
        let mut cluster = Self::without_etcd();
        cluster.set_gateway_flags(flags);
        cluster.fill(size, &fast_election())
    }

    /// Starts a complete cluster with these flags for elections, and waits until it is ready.
    pub fn start_with(size: Size, election: &[String]) -> Self {
        Self::without_etcd().fill(size, election)
    }

    /// Starts all processes in a cluster without any, with these flags for elections, and waits until it is ready.
    #[must_use]
    pub fn fill(self, size: Size, election: &[String]) -> Self {
        let mut cluster = self.base(size.gateways);
        for service in ELECTED {
            for n in 0..size.replicas {
                cluster.service(service, n, election);
            }
        }
        cluster.start_housekeeping();
        let node = |n| format!("node-{n}");
        for n in 0..size.process_nodes {
            cluster.start_client(process_agent(&cluster.state, &cluster.spec, n, &node(n)));
        }
        if size.simulated_nodes > 0 {
            let n = size.process_nodes;
            let agent = simulated_agent(&cluster.state, n, &node(n), size.simulated_nodes);
            cluster.start_client(agent);
        }
        let nodes = size.process_nodes + size.simulated_nodes;
        let kubectl = cluster.kubectl();
        eventually("all nodes are Ready", || {
            let listed = kubectl.run("get nodes --no-headers").stdout;
            let ready = listed
                .lines()
                .filter(|line| line.contains(" Ready"))
                .count();
            (ready == nodes).then_some(()).ok_or(listed)
        });
        cluster
    }

    /// Starts etcd and one gateway.
    pub fn bare() -> Self {
        Self::bare_with(1)
    }

    /// Starts etcd and this number of gateways.
    pub fn bare_with(gateways: usize) -> Self {
        Self::without_etcd().base(gateways)
    }

    fn base(self, gateways: usize) -> Self {
        let mut cluster = self;
        (1..gateways).for_each(|_| cluster.add_gateway());
        cluster.start_etcd();
        for n in 0..gateways {
            cluster.start_gateway_at(n);
        }
        cluster.wait_until_ready();
        cluster.remove_permission();
        cluster
    }

    /// Creates a directory and reserves ports; starts no process.
    ///
    /// # Panics
    /// If no certificates can be made.
    pub fn without_etcd() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let state = StateDir::find(directory.path(), Some(directory.path().to_owned()));
        let spec = ClusterSpec {
            gateways: vec![free_port()],
            etcd: free_port(),
            ..ClusterSpec::default()
        };
        state.create().expect("it is writable");
        let made = state.pki().ensure([]);
        made.expect("certificates can be made");
        let kubeconfig = state.write_kubeconfig(spec.gateways[0]);
        kubeconfig.expect("it is writable");
        Self {
            state,
            spec,
            gateway_flags: Vec::new(),
            environment: Vec::new(),
            guarded: true,
            processes: BTreeMap::new(),
            _directory: directory,
        }
    }

    /// Sets additional flags for gateways started from now on.
    pub fn set_gateway_flags(&mut self, flags: &[&str]) {
        self.gateway_flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    }

    /// Lets gateways started from now on listen at this address of the machine, too.
    pub fn listen_also(&mut self, address: IpAddr) {
        self.spec.listen.push(address);
    }

    /// Reserves a port for one more gateway, without starting it.
    pub fn add_gateway(&mut self) {
        self.spec.gateways.push(free_port());
    }

    /// Returns the directory of logs and state.
    pub fn directory(&self) -> &Path {
        self.state.state()
    }

    /// Returns the certificates of the cluster.
    pub fn pki(&self) -> Pki {
        self.state.pki()
    }

    /// Returns the state directory of the agent of a process node.
    pub fn node(&self, name: &str) -> PathBuf {
        self.state.node(name)
    }

    /// Returns the address of the first gateway, for its administrator.
    pub fn gateway_url(&self) -> Address {
        self.gateway_url_at(0)
    }

    /// Returns the address of `gateway-<n>`.
    pub fn gateway_url_at(&self, n: usize) -> Address {
        self.administrator(address(self.spec.gateways[n]))
    }

    /// Returns the addresses of all gateways, comma-separated.
    pub fn gateway_urls(&self) -> Address {
        self.administrator(self.spec.addresses())
    }

    /// Returns the address of a process of the cluster at `<host>:<port>`, for its administrator.
    pub fn process_at(&self, place: &str) -> Address {
        self.administrator(format!("https://{place}"))
    }

    /// Returns the address of etcd, for a client that is one of its members.
    pub fn etcd_url(&self) -> Address {
        if !self.guarded {
            return Address::plain(&format!("{LOOPBACK}:{}", self.spec.etcd));
        }
        let files = self.state.pki().files("etcd-0");
        let credentials = Pki::credentials(&files).expect("etcd has been started");
        Address::secure(address(self.spec.etcd), credentials)
    }

    fn administrator(&self, url: String) -> Address {
        if !self.guarded {
            return Address::plain(&plain::place(&url));
        }
        let credentials = Pki::credentials(&self.state.pki().administrator());
        Address::secure(url, credentials.expect("they were made at the start"))
    }

    /// Returns a kubectl that uses the first gateway.
    pub fn kubectl(&self) -> Kubectl {
        let kubectl = Kubectl::new(self.directory().to_owned());
        match self.guarded {
            true => kubectl,
            // The kubeconfig has a URL of TLS.
            false => kubectl.at(&self.gateway_url()),
        }
    }

    /// Returns a kubectl that uses `gateway-<n>`.
    pub fn kubectl_at(&self, n: usize) -> Kubectl {
        self.kubectl().at(&self.gateway_url_at(n))
    }

    /// Returns the output of `<service>-<n>` so far.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.state.log(name)).unwrap_or_default()
    }

    /// Returns the process `<service>-<n>`.
    pub fn process(&mut self, name: &str) -> &mut Process {
        let process = self.processes.get_mut(name);
        process.unwrap_or_else(|| panic!("no process {name}"))
    }

    /// Returns the names of all processes.
    pub fn process_names(&self) -> Vec<String> {
        self.processes.keys().cloned().collect()
    }

    /// Waits until all gateways are ready.
    pub fn wait_until_ready(&self) {
        for n in 0..self.spec.gateways.len() {
            self.wait_for_gateway(n);
        }
    }

    /// Waits until `gateway-<n>` is ready.
    pub fn wait_for_gateway(&self, n: usize) {
        let kubectl = self.kubectl_at(n);
        eventually("the gateway is ready", || {
            let output = kubectl.run("get --raw /readyz");
            output.success.then_some(()).ok_or(output.stderr)
        });
    }

    /// Waits until a service has a leader, and returns its name, `<service>-<n>`.
    pub fn leader(&self, service: &str) -> String {
        let kubectl = self.kubectl();
        eventually(&format!("{service} has a leader"), || {
            let output = kubectl.run(&format!(
                "get lease {service} -n setpoint-system -o jsonpath={{.spec.holderIdentity}}"
            ));
            let holder = output
                .stdout
                .split('_')
                .next()
                .unwrap_or_default()
                .to_owned();
            (!holder.is_empty()).then_some(holder).ok_or(output.stderr)
        })
    }
}

impl Cluster {
    /// Returns what its history violates, and the requests of services that were refused. Nothing is known of a failed
    /// test; of the history, if etcd does not run.
    fn violations(&self) -> Vec<String> {
        if std::thread::panicking() {
            return Vec::new();
        }
        let runs = self.processes.contains_key("etcd-0");
        let history = runs.then(|| EtcdLog::read(&self.etcd_url())).flatten();
        let history = history.map(|history| invariants::violations(&history));
        let mut violations = history.unwrap_or_default();
        violations.extend(self.refused());
        violations
    }

    /// Returns the requests of services that gateways have refused, from their logs.
    fn refused(&self) -> impl Iterator<Item = String> {
        let logs = (0..self.spec.gateways.len()).map(|n| self.log(&format!("gateway-{n}")));
        let lines = logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>());
        lines.filter(|line| line.contains(REFUSED))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let violations = self.violations();
        if std::thread::panicking() {
            // It may be why the test has failed.
            self.refused().for_each(|line| eprintln!("{line}"));
        }
        self.processes.clear();
        if let Err(error) = sweep(&self.state) {
            eprintln!("{error:#}");
        }
        assert!(violations.is_empty(), "{violations:#?}");
    }
}
