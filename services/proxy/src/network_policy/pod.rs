//! The fields of Pods and Namespaces that policies depend on.

use std::net::Ipv4Addr;

use setpoint_controller::View;
use setpoint_model::{Labels, Meta, pod};
use setpoint_proto::core::{ContainerPort, Namespace, Pod, PodSpec};

use crate::Protocol;

/// A Pod. Kept small, since all Pods of the cluster are cached.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    /// The identity.
    pub meta: Meta,
    /// The labels.
    pub labels: Labels,
    /// Its address; `None` if it has none of its own, such as in the host's network, or has ended.
    pub ip: Option<Ipv4Addr>,
    /// Its node; empty if it has none.
    pub node: Box<str>,
    /// The ports that have names.
    pub ports: Box<[(Box<str>, Protocol, u16)]>,
}

impl View for PodView {
    type Object = Pod;

    fn of(mut pod: Pod) -> Self {
        let has_address = !pod.spec.host_network && !pod::is_terminal(&pod);
        let ips = pod.status.pod_ips.iter().map(|one| &one.ip);
        let mut ips = ips.chain([&pod.status.pod_ip]);
        Self {
            ip: ips.find_map(|ip| ip.parse().ok()).filter(|_| has_address),
            ports: named_ports(&pod.spec),
            node: pod.spec.node_name.as_str().into(),
            labels: std::mem::take(&mut pod.metadata.labels).into(),
            meta: Meta::identity(&pod.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl PodView {
    /// Returns the numbers of the ports with this name.
    pub(super) fn numbers(&self, protocol: Protocol, name: &str) -> impl Iterator<Item = u16> {
        let ports = self.ports.iter();
        let named = ports.filter(move |one| one.1 == protocol && *one.0 == *name);
        named.map(|one| one.2)
    }
}

/// Returns the ports of the containers that run beside each other.
fn named_ports(spec: &PodSpec) -> Box<[(Box<str>, Protocol, u16)]> {
    let sidecars = spec.init_containers.iter();
    let sidecars = sidecars.filter(|one| one.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars);
    let named = |port: &ContainerPort| {
        let number = port.container_port.try_into().ok()?;
        let protocol = Protocol::of(&port.protocol)?;
        (!port.name.is_empty()).then(|| (port.name.as_str().into(), protocol, number))
    };
    let ports = ports.flat_map(|container| &container.ports);
    ports.filter_map(named).collect()
}

/// A Namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceView {
    /// The identity.
    pub meta: Meta,
    /// The labels.
    pub labels: Labels,
}

impl View for NamespaceView {
    type Object = Namespace;

    fn of(mut namespace: Namespace) -> Self {
        Self {
            labels: std::mem::take(&mut namespace.metadata.labels).into(),
            meta: Meta::identity(&namespace.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
