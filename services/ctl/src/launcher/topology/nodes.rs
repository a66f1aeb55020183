//! The agents of nodes.

use std::net::Ipv4Addr;

use super::{AGENT, ProcessSpec, reached_at};
use crate::launcher::cluster_spec::ClusterSpec;
use crate::launcher::identity::Identity;
use crate::launcher::joined::{Joined, NodeNetwork, PodNetwork, Runtime};
use crate::launcher::proxy::{self, PROXY};
use crate::launcher::state_dir::StateDir;

/// Prefix of the name of an agent that has joined; its node follows. Names are unique in the whole cluster, and those
/// of its other agents have a number there.
const JOINED_PREFIX: &str = "node-agent-of-";
/// Prefix of the name of the proxy of such a node.
const JOINED_PROXY_PREFIX: &str = "proxy-of-";
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

/// Returns the processes of a node that has joined: its agent, and a proxy if it is a machine of its own. The proxy
/// is a client, and a server, by the certificates of the node.
pub fn joined(state_dir: &StateDir, joined: &Joined) -> Vec<ProcessSpec> {
    let network = joined.network.as_ref();
    let network = network.filter(|_| joined.runtime != Runtime::Simulated);
    let proxy = network.map(|network| {
        let (files, serving) = (
            joined.client_files(state_dir),
            joined.serving_files(state_dir),
        );
        let proxy = ProcessSpec {
            name: format!("{JOINED_PROXY_PREFIX}{}", joined.node),
            ..ProcessSpec::bare(PROXY, 0)
        };
        let routed = [
            "--routed-pod-ranges".to_owned(),
            network.cluster.pod_range.to_string(),
        ];
        let routed = (network.pods == PodNetwork::Routes).then_some(routed);
        proxy
            .arg("--tls-ca-file", files.ca_file.display())
            .arg("--tls-certificate-file", files.certificate_file.display())
            .arg("--tls-key-file", files.key_file.display())
            .arg(
                "--serving-certificate-file",
                serving.certificate_file.display(),
            )
            .arg("--serving-key-file", serving.key_file.display())
            .args(reached_at(network.address))
            .arg("--table", proxy::table(state_dir))
            .arg("--service-ranges", network.cluster.service_range)
            .arg("--nodes", &joined.node)
            .args(routed.into_iter().flatten())
            .client_of(&joined.server)
    });
    let agent = joined_agent(state_dir, joined);
    std::iter::once(agent).chain(proxy).collect()
}

/// Returns the arguments of the agent of a node that is a machine of its own.
fn machine(network: &NodeNetwork) -> Vec<String> {
    let cluster = &network.cluster;
    let pairs = [
        ("--node-ip", network.address.to_string()),
        ("--cluster-dns", cluster.cluster_dns.to_string()),
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
