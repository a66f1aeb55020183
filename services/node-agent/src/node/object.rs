//! The labels, taints and status of a Node object. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use setpoint_model::version;
use setpoint_model::volume::RUNTIME;
use setpoint_proto::core::{
    DaemonEndpoint, NodeAddress, NodeDaemonEndpoints, NodeFeatures, NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures, NodeStatus, NodeSystemInfo, Taint,
};
use setpoint_proto::meta::Quantity;
use setpoint_runtime::cri::{Cri, Features};
use setpoint_runtime::docker::Docker;
use setpoint_runtime::process::Processes;
use setpoint_runtime::simulated::Simulated;
use setpoint_runtime::{Kind, Runtime as _};

use super::machine::{Machine, architecture};
use super::{Node, NodeState, conditions};
use crate::pod::rejection::OS;

/// The feature that Pods with the restart rule `RestartAllContainers` need (KEP-5328).
const RESTARTS_ALL: &str = "RestartAllContainersOnContainerExits";

/// The annotation with the directory of the node's persistent volumes.
const LOCAL_PATH: &str = "setpoint.dev/local-path";

/// Returns the labels that the agent sets.
pub fn labels(node: &Node) -> BTreeMap<String, String> {
    let labels = [
        ("kubernetes.io/hostname", node.name.as_str()),
        OS,
        ("kubernetes.io/arch", architecture()),
        (RUNTIME, runtime(node)),
    ];
    labels
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Returns the annotations that the agent sets.
pub fn annotations(node: &Node) -> BTreeMap<String, String> {
    let path = node.local_path.as_ref();
    let path = path.map(|path| (LOCAL_PATH.to_owned(), path.display().to_string()));
    path.into_iter().collect()
}

/// Returns the taints of a new node. They are not enforced later, so that users may change them.
///
/// A simulated node is tainted `PreferNoSchedule`, so that Pods prefer nodes that run them.
pub fn taints(node: &Node) -> Vec<Taint> {
    let simulated = Taint {
        key: "setpoint.dev/simulated".to_owned(),
        effect: "PreferNoSchedule".to_owned(),
        ..Taint::default()
    };
    match node.runtime {
        Kind::Process | Kind::Docker | Kind::Cri => Vec::new(),
        Kind::Simulated => vec![simulated],
    }
}

fn runtime(node: &Node) -> &'static str {
    match node.runtime {
        Kind::Cri => Cri::NAME,
        Kind::Docker => Docker::NAME,
        Kind::Process => Processes::NAME,
        Kind::Simulated => Simulated::NAME,
    }
}

/// Returns the node's current status. Fields set by others are kept.
pub fn status(
    node: &Node,
    machine: &Machine,
    address: &str,
    state: &NodeState,
    reported: &NodeStatus,
    now: Timestamp,
) -> NodeStatus {
    let (host, port) = host_and_port(address);
    NodeStatus {
        capacity: with_added(&node.resources, reported),
        allocatable: with_added(&node.allocatable, reported),
        conditions: conditions::of(node, state, reported, now),
        addresses: addresses(node, host),
        daemon_endpoints: NodeDaemonEndpoints {
            kubelet_endpoint: DaemonEndpoint {
                port: port.parse().unwrap_or_default(),
            },
        },
        node_info: info(node, machine),
        declared_features: vec![RESTARTS_ALL.to_owned()],
        runtime_handlers: handlers(&node.features),
        features: features(&node.features),
        ..reported.clone()
    }
}

/// Returns resources of the node, with those that others have added to its capacity. Nothing is reserved of these.
fn with_added(
    own: &BTreeMap<String, Quantity>,
    reported: &NodeStatus,
) -> BTreeMap<String, Quantity> {
    let mut resources = reported.capacity.clone();
    resources.extend(own.clone());
    resources
}

fn host_and_port(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host.trim_matches(['[', ']']), port)
}

/// Returns the IP in the address at which others reach an agent; `None` if that is a name.
pub fn internal_ip(address: &str) -> Option<IpAddr> {
    host_and_port(address).0.parse().ok()
}

fn addresses(node: &Node, host: &str) -> Vec<NodeAddress> {
    let addresses = [
        ("InternalIP", host.to_owned()),
        ("Hostname", node.name.clone()),
    ];
    let addresses = addresses.map(|(kind, address)| NodeAddress {
        r#type: kind.to_owned(),
        address,
    });
    addresses.into()
}

/// Returns the name of the software that runs containers.
fn runtime_name(node: &Node) -> &str {
    match node.runtime_name.as_str() {
        "" => runtime(node),
        named => named,
    }
}

/// Returns the handlers of the runtime, as it reports them.
fn handlers(features: &Features) -> Vec<NodeRuntimeHandler> {
    let handlers = features.handlers.iter().map(|handler| NodeRuntimeHandler {
        name: handler.name.clone(),
        features: Some(NodeRuntimeHandlerFeatures {
            recursive_read_only_mounts: Some(handler.recursive_read_only_mounts),
            user_namespaces: Some(handler.user_namespaces),
        }),
    });
    handlers.collect()
}

/// Returns the features of the runtime, if it reports any.
fn features(features: &Features) -> Option<NodeFeatures> {
    features
        .supplemental_groups_policy
        .map(|known| NodeFeatures {
            supplemental_groups_policy: Some(known),
        })
}

fn info(node: &Node, machine: &Machine) -> NodeSystemInfo {
    NodeSystemInfo {
        machine_id: machine.id.clone(),
        system_uuid: machine.id.clone(),
        boot_id: machine.boot_id.clone(),
        kernel_version: machine.kernel.clone(),
        os_image: machine.os_image.clone(),
        container_runtime_version: format!("{}://{}", runtime_name(node), node.runtime_version),
        kubelet_version: version::git_version(env!("CARGO_PKG_VERSION")),
        kube_proxy_version: String::new(),
        operating_system: "linux".to_owned(),
        architecture: architecture().to_owned(),
        ..NodeSystemInfo::default()
    }
}
