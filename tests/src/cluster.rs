//! A whole cluster of real processes on loopback, gone when dropped.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;

use crate::process::end_containers;
use crate::{Kubectl, Process, WallClock, eventually, free_port};

/// How many of what.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Gateways, side by side over the one etcd.
    pub gateways: usize,
    /// Replicas of each controller and of the scheduler.
    pub replicas: usize,
    /// Agents that run real processes, each one node.
    pub process_nodes: usize,
    /// Simulated nodes, all in one agent.
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
    folder: TempDir,
    gateways: Vec<String>,
    gateway_flags: Vec<String>,
    etcd: String,
    peer: String,
    environment: Vec<String>,
    processes: BTreeMap<String, Process>,
}

/// The services of which several run side by side and one leads.
pub const ELECTED: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
];

impl Cluster {
    /// Everything, ready, with elections that are fast enough for a test.
    pub fn start(size: Size) -> Self {
        Self::start_with(size, &fast_election())
    }

    /// Everything, ready, with the settings that users get.
    pub fn start_as_shipped(size: Size) -> Self {
        Self::start_with(size, &[])
    }

    /// Everything, ready, whose spans all go to this collector.
    pub fn traced(size: Size, collector: &str) -> Self {
        let collector = format!("OTEL_EXPORTER_OTLP_ENDPOINT={collector}");
        Self::with_environment(size, &[&collector])
    }

    /// Everything, ready, with these variables, `NAME=value`, in the environment of each service.
    pub fn with_environment(size: Size, variables: &[&str]) -> Self {
        let mut cluster = Self::without_etcd();
        cluster.environment = variables.iter().map(|&variable| variable.into()).collect();
        cluster.fill(size, &fast_election())
    }

    /// Everything, ready, with elections by these flags.
    pub fn start_with(size: Size, election: &[String]) -> Self {
        Self::without_etcd().fill(size, election)
    }

    fn fill(self, size: Size, election: &[String]) -> Self {
        let mut cluster = self.base(size.gateways);
        for service in ELECTED {
            for n in 0..size.replicas {
                cluster.service(&format!("{service}-{n}"), service, election);
            }
        }
        for n in 0..size.process_nodes {
            cluster.agent(n, &["--runtime".into(), "process".into()]);
        }
        if size.simulated_nodes > 0 {
            let nodes = size.simulated_nodes.to_string();
            let flags = ["--runtime", "simulated", "--nodes", &nodes].map(str::to_owned);
            cluster.agent(size.process_nodes, &flags);
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

    /// etcd and a gateway, nothing else.
    pub fn bare() -> Self {
        Self::bare_with(1)
    }

    /// etcd and so many gateways, nothing else.
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
        cluster
    }

    /// A folder and ports; nothing runs.
    pub fn without_etcd() -> Self {
        let url = || format!("http://127.0.0.1:{}", free_port());
        let cluster = Self {
            folder: TempDir::new().expect("a temporary folder"),
            gateways: vec![format!("127.0.0.1:{}", free_port())],
            gateway_flags: Vec::new(),
            etcd: url(),
            peer: url(),
            environment: Vec::new(),
            processes: BTreeMap::new(),
        };
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\ncontexts:\n- name: test\n  context: {{cluster: test, user: test}}\n\
             clusters:\n- name: test\n  cluster: {{server: 'http://{}'}}\nusers:\n- name: test\n  user: {{}}\n",
            cluster.gateways[0]
        );
        std::fs::write(cluster.folder().join("kubeconfig"), kubeconfig).expect("it is writable");
        cluster
    }

    /// What gateways that start from now on are told besides.
    pub fn set_gateway_flags(&mut self, flags: &[&str]) {
        self.gateway_flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    }

    /// A port for one more gateway, which does not run yet.
    pub fn add_gateway(&mut self) {
        self.gateways.push(format!("127.0.0.1:{}", free_port()));
    }

    /// Where logs and state are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The first gateway's address, `http://…`.
    pub fn gateway_url(&self) -> String {
        self.gateway_url_at(0)
    }

    /// The address of `gateway-<n>`, `http://…`.
    pub fn gateway_url_at(&self, n: usize) -> String {
        format!("http://{}", self.gateways[n])
    }

    /// The addresses of all gateways, as services are told them.
    pub fn gateway_urls(&self) -> String {
        let urls: Vec<_> = (0..self.gateways.len())
            .map(|n| self.gateway_url_at(n))
            .collect();
        urls.join(",")
    }

    /// Where etcd listens.
    pub fn etcd_url(&self) -> &str {
        &self.etcd
    }

    /// kubectl for this cluster, by its first gateway.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.folder().to_owned())
    }

    /// kubectl by `gateway-<n>`.
    pub fn kubectl_at(&self, n: usize) -> Kubectl {
        self.kubectl().at(&self.gateway_url_at(n))
    }

    /// One of its processes, `<service>-<n>`.
    pub fn process(&mut self, name: &str) -> &mut Process {
        let process = self.processes.get_mut(name);
        process.unwrap_or_else(|| panic!("no process {name}"))
    }

    /// Starts etcd over the data that it had.
    pub fn start_etcd(&mut self) {
        let data = self.folder().join("etcd").display().to_string();
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
        let process = Process::start(self.folder.path(), "etcd", command);
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

    /// Starts `gateway-<n>` over an etcd that it reaches at this address.
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
        let process = Process::start(self.folder.path(), &name, command);
        self.processes.insert(name, process);
    }

    /// Waits for all gateways.
    pub fn wait_until_ready(&self) {
        for n in 0..self.gateways.len() {
            self.wait_for_gateway(n);
        }
    }

    /// Waits for `gateway-<n>`.
    pub fn wait_for_gateway(&self, n: usize) {
        let kubectl = self.kubectl_at(n);
        eventually("the gateway is ready", || {
            let output = kubectl.run("get --raw /readyz");
            output.success.then_some(()).ok_or(output.stderr)
        });
    }

    /// Starts a service against all gateways.
    pub fn service(&mut self, name: &str, service: &str, flags: &[String]) {
        self.service_through(&self.gateway_urls(), name, service, flags);
    }

    /// Starts a service that reaches the gateways at these addresses.
    pub fn service_through(&mut self, gateway: &str, name: &str, service: &str, flags: &[String]) {
        let program = self.program(service);
        self.launch(program, gateway, name, flags);
    }

    /// Starts a service that goes by this wall clock.
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
        let process = Process::start(self.folder.path(), name, command.collect());
        self.processes.insert(name.to_owned(), process);
    }

    /// Returns the command that starts a service in the cluster's environment.
    fn program(&self, service: &str) -> impl Iterator<Item = String> + use<> {
        let environment = self.environment.clone().into_iter();
        let env = (!self.environment.is_empty()).then(|| "env".to_owned());
        env.into_iter().chain(environment).chain([binary(service)])
    }

    fn agent(&mut self, n: usize, flags: &[String]) {
        let name = format!("node-agent-{n}");
        let state = self.folder().join(&name).display().to_string();
        let own = ["--node-name", &format!("node-{n}"), "--state-dir", &state].map(str::to_owned);
        let flags: Vec<_> = own.iter().chain(flags).cloned().collect();
        self.service(&name, "node-agent", &flags);
    }

    /// Who holds the lease of a service: `<service>-<n>`.
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

impl Drop for Cluster {
    fn drop(&mut self) {
        self.processes.clear();
        end_containers(self.folder.path());
    }
}

/// The flags of an election in which a crashed leader is replaced within three seconds.
pub fn fast_election() -> Vec<String> {
    election("2s", "1400ms")
}

/// The flags of an election whose leader may be silent for so long before another is elected, and stops before that when
/// it could not renew its lease for so long. It renews as often as in a fast one.
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

/// A binary of this workspace, beside the test's own (`target/<profile>/deps/<test>`) or the benchmark's (`target/<profile>/bench`).
pub(crate) fn binary(name: &str) -> String {
    let own = std::env::current_exe().expect("a test is a file");
    let mut folders = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name));
    let path = folders.find(|path| path.is_file());
    let path = path.unwrap_or_else(|| panic!("no binary {name}: build the workspace first"));
    path.display().to_string()
}
