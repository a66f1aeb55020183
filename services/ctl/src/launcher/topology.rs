//! The processes of a local cluster, derived from its [`ClusterSpec`].

use std::net::Ipv4Addr;

use super::cluster_spec::{ClusterSpec, LOOPBACK, address, addresses};
use super::state_dir::StateDir;

/// All services, each a program of this workspace.
pub const SERVICES: [&str; 6] = [
    "gateway",
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
    MANAGER,
    "node-agent",
];
/// The process of all controllers that are not services of their own. Each of them elects a leader.
const MANAGER: &str = "controller-manager";
/// The controllers that it runs.
const MANAGED: &str = "*,-deployment,-replicaset";
/// Services that elect a leader among their replicas, by a Lease of their name.
pub const ELECTED: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
];
/// Prefix of a relay's name; the name of its client follows.
const RELAY_PREFIX: &str = "relay-";
/// Third octet of the first relay addresses, 127.0.100.1 and following. Pods have addresses from 127.1.0.0 on.
const RELAY_OCTET: usize = 100;
/// Nodes that run containers as processes of this machine, with one agent each.
const NODES: [&str; 2] = ["node-0", "node-1"];
/// Number of simulated nodes; one agent serves all of them.
const SIMULATED: usize = 10;
/// The socket of etcd's only member for others, in its working directory. A port would take raft messages, which are
/// writes to the store, from any process of this machine.
const ETCD_PEERS: &str = "unix://etcd-peers:0";
/// Size limit of etcd's database in bytes (4 GiB): half of the maximum that etcd recommends.
const QUOTA: &str = "4294967296";
/// Number of old revisions that etcd keeps, for continued lists and resumed watches.
const HISTORY: &str = "100000";

/// A process that the cluster should have.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// The service, which is also the name of the program.
    pub service: &'static str,
    /// `<service>-<n>`.
    pub name: String,
    /// `<n>`.
    index: usize,
    /// Arguments, without those for the name and the listen address.
    pub args: Vec<String>,
    /// The required port; `None` for any free port.
    pub port: Option<u16>,
    /// For a relay, the address at which it accepts connections for the gateways.
    pub relay_ip: Option<Ipv4Addr>,
}

impl ProcessSpec {
    /// Returns `<service>-<index>` without arguments, on any free port.
    pub fn new(service: &'static str, index: usize) -> Self {
        Self {
            service,
            name: format!("{service}-{index}"),
            index,
            args: Vec::new(),
            port: None,
            relay_ip: None,
        }
    }

    fn arg(self, flag: &str, value: impl ToString) -> Self {
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

    /// Returns a gateway or a node agent with the secret that they share.
    #[must_use]
    pub fn with_agent_secret(self, state_dir: &StateDir) -> Self {
        self.arg("--agent-secret-file", state_dir.agent_secret().display())
    }

    fn with_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }
}

/// Returns the name of the relay between `client` and the gateways.
pub fn relay_name(client: &str) -> String {
    format!("{RELAY_PREFIX}{client}")
}

/// Returns the service of a process name, `<service>-<n>` or `relay-<service>-<n>`.
pub fn service_of(name: &str) -> &str {
    if name.starts_with(RELAY_PREFIX) {
        return "relay";
    }
    name.rsplit_once('-').map_or(name, |(service, _)| service)
}

/// Returns the HTTP path of a process's readiness check.
pub fn health_path(name: &str) -> &'static str {
    match service_of(name) {
        "etcd" => "/health",
        _ => "/readyz",
    }
}

/// Returns the stage in which a process starts, an index into the result of [`stages`].
pub fn stage(name: &str) -> usize {
    match service_of(name) {
        "etcd" => 0,
        "gateway" | "relay" => 1,
        _ => 2,
    }
}

/// Returns all processes in stages. Each stage starts when the one before it is ready.
pub fn stages(state_dir: &StateDir, spec: &ClusterSpec) -> [Vec<ProcessSpec>; 3] {
    let clients: Vec<_> = elected(spec).chain(agents(state_dir)).collect();
    let relays = clients.iter().filter(|_| spec.relays);
    let relays = relays.map(|client| relay_for(client, spec));
    let gateways = gateways(spec).map(|gateway| gateway.with_agent_secret(state_dir));
    let middle = gateways.chain(relays).collect();
    let clients = clients.into_iter().map(|client| {
        let gateways = addresses(&gateway_ip(&client, spec), &spec.gateways);
        client.client_of(&gateways)
    });
    [vec![etcd(state_dir, spec)], middle, clients.collect()]
}

/// Returns the IP at which `client` connects to the gateways: theirs, or that of its relay. The ports are the same.
fn gateway_ip(client: &ProcessSpec, spec: &ClusterSpec) -> String {
    if !spec.relays {
        return LOOPBACK.to_owned();
    }
    let row = SERVICES
        .iter()
        .position(|service| *service == client.service);
    let row = RELAY_OCTET + row.unwrap_or_default();
    format!("127.0.{row}.{}", client.index + 1)
}

fn relay_for(client: &ProcessSpec, spec: &ClusterSpec) -> ProcessSpec {
    let mut relay = ProcessSpec::new("relay", client.index);
    let ip = gateway_ip(client, spec);
    relay.name = relay_name(&client.name);
    relay.relay_ip = ip.parse().ok();
    relay.args.push("relay".to_owned());
    for port in &spec.gateways {
        relay = relay.arg("--to", format!("{LOOPBACK}:{port}"));
    }
    // Last, because `RunningProcess::is_current` compares a prefix: a relay with more gateways must not match.
    relay.arg("--at", ip)
}

/// Returns etcd with the port of `spec`.
pub fn etcd(state_dir: &StateDir, spec: &ClusterSpec) -> ProcessSpec {
    let (client, peer) = (address(spec.etcd), ETCD_PEERS);
    ProcessSpec::new("etcd", 0)
        .with_port(spec.etcd)
        .arg("--name", "setpoint")
        .arg("--data-dir", state_dir.etcd().display())
        .arg("--listen-client-urls", &client)
        .arg("--advertise-client-urls", &client)
        .arg("--listen-peer-urls", peer)
        .arg("--initial-advertise-peer-urls", peer)
        .arg("--initial-cluster", format!("setpoint={peer}"))
        .arg("--quota-backend-bytes", QUOTA)
        .arg("--auto-compaction-mode", "revision")
        .arg("--auto-compaction-retention", HISTORY)
        .arg("--logger", "zap")
        .arg("--log-level", "warn")
}

fn gateways(spec: &ClusterSpec) -> impl Iterator<Item = ProcessSpec> {
    (0..spec.gateways.len()).map(|index| gateway(spec, index, &address(spec.etcd)))
}

/// Returns `gateway-<index>` over the etcd at this address.
///
/// # Panics
/// If `spec` has no such gateway.
pub fn gateway(spec: &ClusterSpec, index: usize, etcd: &str) -> ProcessSpec {
    ProcessSpec::new("gateway", index)
        .with_port(spec.gateways[index])
        .arg("--etcd-endpoints", etcd)
}

fn elected(spec: &ClusterSpec) -> impl Iterator<Item = ProcessSpec> {
    let replicas = |service| (0..spec.replicas).map(move |index| ProcessSpec::new(service, index));
    let managers = replicas(MANAGER).map(|manager| manager.arg("--controllers", MANAGED));
    let replicas = ELECTED.into_iter().flat_map(replicas).chain(managers);
    replicas.map(|process| process.args(spec.profile.election()))
}

fn agents(state_dir: &StateDir) -> impl Iterator<Item = ProcessSpec> {
    let real = NODES.into_iter().enumerate();
    let real = real.map(|(index, node)| process_agent(state_dir, index, node));
    let simulated = simulated_agent(NODES.len(), "simulated", SIMULATED);
    real.chain([simulated])
        .map(|agent| agent.with_agent_secret(state_dir))
}

/// Returns `node-agent-<index>`, which runs the containers of `node` as processes of this machine.
pub fn process_agent(state_dir: &StateDir, index: usize, node: &str) -> ProcessSpec {
    ProcessSpec::new("node-agent", index)
        .arg("--runtime", "process")
        .arg("--node-name", node)
        .arg("--state-dir", state_dir.node(node).display())
}

/// Returns `node-agent-<index>`, which simulates the nodes `<name>-0` to `<name>-<count - 1>`.
pub fn simulated_agent(index: usize, name: &str, count: usize) -> ProcessSpec {
    ProcessSpec::new("node-agent", index)
        .arg("--runtime", "simulated")
        .arg("--node-name", name)
        .arg("--nodes", count)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::cluster_spec::Profile;
    use super::*;

    fn spec(profile: Profile) -> ClusterSpec {
        ClusterSpec {
            gateways: vec![7443, 7444],
            replicas: 3,
            profile,
            relays: false,
            etcd: 7379,
        }
    }

    fn topology(profile: Profile) -> [Vec<ProcessSpec>; 3] {
        stages(&nowhere(), &spec(profile))
    }

    fn relayed() -> [Vec<ProcessSpec>; 3] {
        let relays = ClusterSpec {
            relays: true,
            ..spec(Profile::Standard)
        };
        stages(&nowhere(), &relays)
    }

    fn nowhere() -> StateDir {
        StateDir::find(Path::new("/nowhere"), None)
    }

    #[test]
    fn etcd_starts_before_the_gateways_and_these_before_their_clients() {
        let stages = topology(Profile::Standard);
        let names = stages.each_ref().map(|stage| {
            stage
                .iter()
                .map(|process| process.name.as_str())
                .collect::<Vec<_>>()
        });
        assert_eq!(names[0], ["etcd-0"]);
        assert_eq!(names[1], ["gateway-0", "gateway-1"]);
        assert_eq!(names[2].len(), 4 * 3 + 3);
        assert_eq!(
            names[2][8..],
            [
                "scheduler-2",
                "controller-manager-0",
                "controller-manager-1",
                "controller-manager-2",
                "node-agent-0",
                "node-agent-1",
                "node-agent-2"
            ]
        );
    }

    #[test]
    fn the_stage_of_a_name_is_the_stage_that_contains_the_process() {
        for (index, processes) in relayed().iter().enumerate() {
            for process in processes {
                assert_eq!(service_of(&process.name), process.service);
                assert_eq!(stage(&process.name), index);
            }
        }
    }

    #[test]
    fn every_client_gets_the_addresses_of_all_gateways() {
        let [_, gateways, rest] = topology(Profile::Standard);
        for gateway in gateways {
            assert_eq!(
                gateway.args[..2],
                ["--etcd-endpoints", "http://127.0.0.1:7379"]
            );
        }
        for process in rest {
            let has_addresses = process
                .args
                .iter()
                .any(|arg| arg == "http://127.0.0.1:7443,http://127.0.0.1:7444");
            assert!(has_addresses, "{}", process.name);
        }
    }

    /// Checks DG5: with a port, whoever reaches it can write to the store.
    #[test]
    fn the_peers_of_etcd_have_no_port() {
        let [etcd, _, _] = topology(Profile::Standard);
        let mut args = etcd[0].args.iter();
        args.find(|arg| *arg == "--listen-peer-urls");
        assert_eq!(args.next().unwrap(), ETCD_PEERS);
        assert!(ETCD_PEERS.starts_with("unix://"));
    }

    /// Checks F21.
    #[test]
    fn gateways_and_agents_share_a_secret() {
        let [_, gateways, rest] = topology(Profile::Standard);
        for process in gateways.iter().chain(&rest) {
            let mut args = process.args.iter();
            let secret = args.find(|arg| arg.ends_with("/agent-secret"));
            let shares = ["gateway", "node-agent"].contains(&process.service);
            assert_eq!(secret.is_some(), shares, "{}", process.name);
        }
    }

    #[test]
    fn a_client_with_a_relay_gets_only_the_addresses_of_its_own_relay() {
        let [_, middle, rest] = relayed();
        let relays = middle.iter().filter(|process| process.service == "relay");
        let relays: Vec<_> = relays.collect();
        assert_eq!(relays.len(), rest.len());
        for (process, own) in rest.iter().zip(&relays) {
            assert_eq!(own.name, relay_name(&process.name));
            let ip = own.args.last().unwrap();
            let addresses = format!("http://{ip}:7443,http://{ip}:7444");
            assert_eq!(process.args.last(), Some(&addresses));
            let same = relays.iter().filter(|relay| relay.args.last() == Some(ip));
            assert_eq!(same.count(), 1, "{ip}");
        }
        let expected = "relay --to 127.0.0.1:7443 --to 127.0.0.1:7444 --at 127.0.103.2";
        let scheduler = relays.iter().find(|one| one.name == "relay-scheduler-1");
        assert_eq!(
            scheduler.map(|one| one.args.join(" ")).as_deref(),
            Some(expected)
        );
    }

    #[test]
    fn the_fast_profile_sets_the_lease_timing_of_elected_services_only() {
        let [_, _, rest] = topology(Profile::Fast);
        for process in rest {
            let is_fast = process
                .args
                .iter()
                .any(|arg| arg == "--election-lease-duration");
            assert_eq!(is_fast, process.service != "node-agent", "{}", process.name);
        }
    }
}
