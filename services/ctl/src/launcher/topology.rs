//! The processes of a local cluster, derived from its [`ClusterSpec`].

mod components;
mod gateway;
mod member;
mod nodes;
mod process;

use std::net::Ipv4Addr;

use super::cluster_spec::{ClusterSpec, LOOPBACK, addresses};
use super::component::Component;
use super::network::{Kind, Network};
use super::node_dns::DNS;
use super::proxy::{self, PROXY, Traffic};
use super::state_dir::StateDir;
use components::OF;
use gateway::{gateway_process, gateways};
use nodes::agents;
use process::program_name;

pub use components::{components, is_of_machine};
pub use gateway::gateway;
pub use member::{name as member_name, peer_url};
pub use nodes::{NODES, agent, joined, joined_agent, joined_name, process_agent, simulated_agent};
pub use process::ProcessSpec;

/// All services, each a program of this workspace.
pub const SERVICES: [&str; 7] = [
    "gateway",
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
    MANAGER,
    AGENT,
    DNS,
];
/// The process of all controllers that are not services of their own. Each of them elects a leader.
const MANAGER: &str = "controller-manager";
/// The flag of the controller-manager for the file with the CA that Pods get.
pub const ROOT_CA_FLAG: &str = "--root-ca-certificate-publisher-root-ca-file";
/// The controllers that it runs.
const MANAGED: &str = "*,-deployment,-replicaset";
/// The service of agents.
const AGENT: &str = "node-agent";
/// Services that elect a leader among their replicas, by a Lease of their name.
pub const ELECTED: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
];
/// The process that renews the certificates of the others.
const CERTS: &str = "certs";
/// Prefix of a relay's name; the name of its client follows.
const RELAY_PREFIX: &str = "relay-";
/// Third octet of the first relay addresses, 127.0.100.1 and following. Pods have addresses from 127.1.0.0 on.
const RELAY_OCTET: usize = 100;

/// Returns the name of the relay between `client` and the gateways.
pub fn relay_name(client: &str) -> String {
    format!("{RELAY_PREFIX}{client}")
}

/// Returns the service of a process name, `<service>-<n>`, `relay-<service>-<n>`, or `<service>-of-<place>` of one that
/// has joined, where the place is a node or the address of a machine.
pub fn service_of(name: &str) -> &str {
    if name.starts_with(RELAY_PREFIX) {
        return "relay";
    }
    let joined = name.split_once(OF);
    let own = || name.rsplit_once('-');
    joined.or_else(own).map_or(name, |(service, _)| service)
}

/// Returns whether the process of a service is this program.
pub fn is_this_program(service: &str) -> bool {
    ["relay", CERTS].contains(&service)
}

/// Returns the stage in which a process starts, an index into the result of [`stages`].
pub fn stage(name: &str) -> usize {
    match service_of(name) {
        "etcd" | CERTS => 0,
        "gateway" | "relay" => 1,
        _ => 2,
    }
}

/// Returns all processes in stages. Each stage starts when the one before it is ready.
pub fn stages(state_dir: &StateDir, spec: &ClusterSpec) -> [Vec<ProcessSpec>; 3] {
    let proxy = proxy_process(state_dir, spec);
    let clients: Vec<_> = elected(state_dir, spec)
        .chain(agents(state_dir, spec))
        .chain(cluster_dns(state_dir, spec))
        .chain(proxy)
        .collect();
    let relays = clients.iter().filter(|_| spec.relays);
    let relays: Vec<_> = relays.map(|client| relay_for(client, spec)).collect();
    let gateways = gateways(state_dir, spec).map(|gateway| gateway.reached_by(&relays));
    let middle = gateways.chain(relays.clone()).collect();
    let clients = clients.into_iter().map(|client| {
        let gateways = addresses(&gateway_ip(&client, spec), &spec.gateways);
        client.client_of(&gateways)
    });
    let first = vec![certs(state_dir), etcd(state_dir, spec)];
    [first, middle, clients.collect()]
}

/// Returns the processes of the cluster of a state directory, or of the parts of one that have joined from there, in
/// stages.
///
/// # Errors
/// If a record cannot be read.
pub fn recorded(state_dir: &StateDir) -> anyhow::Result<[Vec<ProcessSpec>; 3]> {
    let parts = Component::all(state_dir)?;
    match parts.is_empty() {
        true => {
            let spec = ClusterSpec::load(state_dir)?.unwrap_or_default();
            Ok(stages(state_dir, &spec))
        }
        false => Ok(components(state_dir, &parts)),
    }
}

/// Returns the process that renews certificates.
fn certs(state_dir: &StateDir) -> ProcessSpec {
    ProcessSpec::bare(CERTS, 0)
        .args(["certs", "--renew"].map(str::to_owned))
        .arg("--state", state_dir.state().display())
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
    let mut relay = ProcessSpec::bare("relay", client.index);
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

/// Returns etcd, the first or only member, with the port of `spec`.
pub fn etcd(state_dir: &StateDir, spec: &ClusterSpec) -> ProcessSpec {
    let alone = format!("{}={}", member::name(spec), member::peer_url(spec));
    member::process(state_dir, spec, ProcessSpec::bare("etcd", 0), &alone)
}

fn elected(state_dir: &StateDir, spec: &ClusterSpec) -> impl Iterator<Item = ProcessSpec> {
    let replicas = move |service| {
        (0..spec.replicas).map(move |index| ProcessSpec::new(state_dir, service, index))
    };
    controllers(state_dir, spec, replicas)
}

/// Returns these replicas of each service that elects a leader.
fn controllers<R: Iterator<Item = ProcessSpec>>(
    state_dir: &StateDir,
    spec: &ClusterSpec,
    replicas: impl Fn(&'static str) -> R,
) -> impl Iterator<Item = ProcessSpec> {
    let managers = replicas(MANAGER).map(|manager| {
        // Pods find it in their volume of the API.
        let ca = state_dir.pki().files(&manager.name).ca_file;
        let manager = manager.arg(ROOT_CA_FLAG, ca.display());
        let manager = manager.args(managed_addresses(spec.network));
        manager.arg("--controllers", MANAGED)
    });
    let replicas = ELECTED.into_iter().flat_map(replicas).chain(managers);
    replicas.map(|process| {
        let process = process.args(spec.profile.election());
        process.args(spec.network.machine().into_iter().flat_map(reached_at))
    })
}

/// Returns the arguments by which gateways of other machines reach a process: they ask it for its reconciles.
fn reached_at(machine: Ipv4Addr) -> Vec<String> {
    let pairs = ["--listen-also", "--advertise"].into_iter();
    pairs
        .flat_map(|flag| [flag.to_owned(), machine.to_string()])
        .collect()
}

/// Returns the replicas of the cluster's DNS, each on a port of its own.
fn cluster_dns(state_dir: &StateDir, spec: &ClusterSpec) -> impl Iterator<Item = ProcessSpec> {
    let ports = spec.dns.iter().enumerate();
    ports.map(move |(index, port)| {
        let process = ProcessSpec::new(state_dir, DNS, index);
        dns_replica(spec.network, process, *port)
    })
}

/// Returns a replica of the cluster's DNS on this port.
fn dns_replica(network: Network, process: ProcessSpec, port: u16) -> ProcessSpec {
    let ip = network.gateway().map(|ip| ip.to_string());
    let ip = ip.unwrap_or_else(|| LOOPBACK.to_owned());
    process
        .arg("--dns-listen", format!("{ip}:{port}"))
        .arg("--registration-cluster-ip", network.dns_service())
        .args(network.machine().into_iter().flat_map(reached_at))
}

/// Returns `proxy-0`, which makes Services carry traffic on this machine, if they are to.
fn proxy_process(state_dir: &StateDir, spec: &ClusterSpec) -> Option<ProcessSpec> {
    let backend = match spec.traffic? {
        // Each node that joins has a proxy of its own.
        _ if spec.network.machine().is_some() => return None,
        Traffic::None => return None,
        Traffic::Nftables => "nftables",
        Traffic::Userspace => "userspace",
    };
    let proxy = ProcessSpec::new(state_dir, PROXY, 0)
        .arg("--backend", backend)
        .arg("--table", proxy::table(state_dir))
        .arg("--service-ranges", spec.network.services())
        .arg("--nodes", NODES.join(","));
    Some(proxy)
}

/// Returns the argument that lets addresses of Pods on the loopback be endpoints, if they are to be.
fn loopback_range(flag: &str, network: Network) -> Vec<String> {
    match network.kind {
        Kind::Loopback => vec![flag.to_owned(), network.pods()],
        Kind::Host | Kind::Bridge | Kind::Machines(_) => Vec::new(),
    }
}

/// Returns the arguments by which nodes get addresses for Pods, if these have networks of their own, and load balancers
/// those of nodes.
fn managed_addresses(network: Network) -> Vec<String> {
    if !network.gives_ranges() {
        return loopback_range("--endpointslice-endpoint-loopback-range", network);
    }
    let flags = [
        ("--node-ipam-cluster-cidrs", network.pods()),
        ("--node-ipam-service-cidrs", network.services()),
        ("--service-lb-enabled", "true".to_owned()),
    ];
    let flags = flags.into_iter();
    flags
        .map(|(flag, value)| format!("{flag}={value}"))
        .collect()
}

#[cfg(test)]
mod tests;
