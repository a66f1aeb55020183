//! The agents of nodes.

use std::net::Ipv4Addr;

use super::components::OF;
use super::{AGENT, ProcessSpec, reached_at};
use crate::launcher::cluster_spec::ClusterSpec;
use crate::launcher::identity::Identity;
use crate::launcher::joined::{Joined, NodeNetwork, PodNetwork};
use crate::launcher::node_dns::{self, DNS};
use crate::launcher::proxy::{self, PROXY};
use crate::launcher::state_dir::StateDir;

/// Prefix of the name of an agent that has joined; its node follows. Names are unique in the whole cluster, and those
/// of its other agents have a number there.
const JOINED_PREFIX: &str = "node-agent-of-";
/// The start of the place in the name of the DNS of such a node: a node may have the name of a machine, on which a
/// replica of the cluster's DNS is `dns-of-<machine>`.
const DNS_PLACE: &str = "node-";
/// Nodes that run containers as processes of this machine, with one agent each.
pub const NODES: [&str; 2] = ["node-0", "node-1"];
/// Number of simulated nodes; one agent serves all of them.
const SIMULATED: usize = 10;

pub(super) fn agents(
    state_dir: &StateDir,
    spec: &ClusterSpec,
) -> impl Iterator<Item = ProcessSpec> {
    let real = NODES.into_iter().enumerate();
    let real = real.map(|(index, node)| process_agent(state_dir, spec, index, node));
    let simulated = simulated_agent(state_dir, NODES.len(), "simulated", SIMULATED);
    let is_needed = spec.network.machine().is_none();
    real.chain([simulated]).filter(move |_| is_needed)
}

/// Returns `node-agent-<index>`, which runs the containers of `node` as processes of this machine.
pub fn process_agent(
    state_dir: &StateDir,
    spec: &ClusterSpec,
    index: usize,
    node: &str,
) -> ProcessSpec {
    let (ip, pods) = (spec.network.node(index), spec.network.pods_of(index));
    let identity = Identity::node(node).reached_at(ip.map(|ip| ip.to_string()));
    ProcessSpec::bare(AGENT, index)
        .identified(state_dir, identity)
        .arg("--runtime", "process")
        .arg("--node-name", node)
        .arg("--state-dir", state_dir.node(node).display())
        .args(ip.into_iter().flat_map(|ip| pod_network(spec, ip)))
        .args(
            pods.into_iter()
                .flat_map(|range| ["--pod-cidr".to_owned(), range]),
        )
}

/// Returns the arguments of an agent whose node has this address on the bridge.
fn pod_network(spec: &ClusterSpec, node: Ipv4Addr) -> Vec<String> {
    let network = spec.network;
    let mut arguments = vec![
        ("--process-bridge", network.bridge()),
        ("--node-ip", node.to_string()),
        ("--listen-also", node.to_string()),
    ];
    let carries = spec.carries_traffic();
    if carries && !spec.dns.is_empty() {
        arguments.push(("--cluster-dns", network.dns_service().to_string()));
    }
    let (gateway, port) = (network.gateway(), spec.gateways[0]);
    let api = match carries {
        true => Some(format!("{}:443", network.api_service())),
        false => gateway.map(|gateway| format!("{gateway}:{port}")),
    };
    arguments.extend(api.map(|api| ("--pod-api-server", api)));
    let pairs = arguments.into_iter();
    pairs
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect()
}

/// Returns `node-agent-<index>`, which simulates the nodes `<name>-0` to `<name>-<count - 1>`, or the node `name` if
/// that is all.
pub fn simulated_agent(
    state_dir: &StateDir,
    index: usize,
    name: &str,
    count: usize,
) -> ProcessSpec {
    agent(state_dir, index, name, count)
        .arg("--runtime", "simulated")
        .arg("--node-name", name)
        .arg("--nodes", count)
}

/// Returns `node-agent-<index>` with the identity of an agent of `count` nodes with this name, without arguments that
/// say so.
pub fn agent(state_dir: &StateDir, index: usize, name: &str, count: usize) -> ProcessSpec {
    let identity = match count {
        1 => Identity::node(name),
        _ => Identity::simulated_nodes(name),
    };
    ProcessSpec::bare(AGENT, index).identified(state_dir, identity)
}

/// Returns the processes of a node that has joined: its agent, and a proxy and DNS if it is a machine of its own.
pub fn joined(state_dir: &StateDir, joined: &Joined) -> Vec<ProcessSpec> {
    let beside = joined.machine().into_iter().flat_map(|network| {
        [
            node_proxy(state_dir, joined, network),
            node_dns(state_dir, joined, network),
        ]
    });
    let agent = joined_agent(state_dir, joined);
    std::iter::once(agent).chain(beside).collect()
}

fn node_proxy(state_dir: &StateDir, joined: &Joined, network: &NodeNetwork) -> ProcessSpec {
    let range = network.cluster.pod_range.to_string();
    let routed = ["--routed-pod-ranges".to_owned(), range];
    let routed = (network.pods == PodNetwork::Routes).then_some(routed);
    beside_agent(state_dir, joined, network, PROXY, &joined.node)
        .arg("--table", proxy::table(state_dir))
        .arg("--service-ranges", network.cluster.service_range)
        .arg("--nodes", &joined.node)
        .args(routed.into_iter().flatten())
        .client_of(&joined.server)
}

/// Returns the DNS that the Pods of a node ask first. Its address is the same on each node, so that it is no endpoint
/// of the Service.
fn node_dns(state_dir: &StateDir, joined: &Joined, network: &NodeNetwork) -> ProcessSpec {
    let place = format!("{DNS_PLACE}{}", joined.node);
    beside_agent(state_dir, joined, network, DNS, &place)
        .arg("--dns-listen", node_dns::listen())
        .args(["--registration-enabled=false".to_owned()])
        .arg("--registration-cluster-ip", network.cluster.cluster_dns)
        .client_of(&joined.server)
}

/// Returns `<service>-of-<place>`, a client and a server by the certificates of a node.
fn beside_agent(
    state_dir: &StateDir,
    joined: &Joined,
    network: &NodeNetwork,
    service: &'static str,
    place: &str,
) -> ProcessSpec {
    let client = joined.client_files(state_dir);
    let serving = joined.serving_files(state_dir);
    let process = ProcessSpec {
        name: format!("{service}{OF}{place}"),
        ..ProcessSpec::bare(service, 0)
    };
    let files = [
        ("--tls-ca-file", client.ca_file),
        ("--tls-certificate-file", client.certificate_file),
        ("--tls-key-file", client.key_file),
        ("--serving-certificate-file", serving.certificate_file),
        ("--serving-key-file", serving.key_file),
    ];
    let files = files.into_iter();
    files
        .fold(process, |process, (flag, file)| {
            process.arg(flag, file.display())
        })
        .args(reached_at(network.address))
}

/// Returns the arguments of the agent of a node that is a machine of its own.
fn machine(network: &NodeNetwork) -> Vec<String> {
    let cluster = &network.cluster;
    let pairs = [
        ("--node-ip", network.address.to_string()),
        ("--cluster-dns", node_dns::servers(cluster.cluster_dns)),
        ("--pod-api-server", cluster.api_server()),
    ];
    let pairs = pairs.into_iter();
    let arguments = pairs.flat_map(|(flag, value)| [flag.to_owned(), value]);
    let arguments = arguments.chain(reached_at(network.address));
    arguments.chain(network.cni()).collect()
}

/// Returns the agent that has joined, or is to. It has no certificate of ours: it asks the cluster for one.
pub fn joined_agent(state_dir: &StateDir, joined: &Joined) -> ProcessSpec {
    let agent = ProcessSpec {
        name: joined_name(&joined.node),
        ..ProcessSpec::bare(AGENT, 0)
    };
    let endpoint = joined.cri_endpoint.iter();
    agent
        .arg("--runtime", joined.runtime.flag())
        .args(endpoint.flat_map(|endpoint| ["--cri-endpoint".to_owned(), endpoint.clone()]))
        .arg("--node-name", &joined.node)
        .arg("--state-dir", state_dir.node(&joined.node).display())
        .arg("--bootstrap-directory", joined.folder(state_dir).display())
        .arg(
            "--bootstrap-token-file",
            joined.token_file(state_dir).display(),
        )
        .args(joined.network.iter().flat_map(machine))
        .client_of(&joined.server)
}

/// Returns the name of the process of an agent that has joined.
pub fn joined_name(node: &str) -> String {
    format!("{JOINED_PREFIX}{node}")
}
