//! The fields of Pods and Namespaces that policies depend on.

use std::net::Ipv4Addr;

use setpoint_controller::View;
use setpoint_model::{Labels, Meta, pod};
use setpoint_proto::core::{ContainerPort, Namespace, Pod};

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
        let mut ips = pod::ips(&pod.status);
        Self {
            ip: ips.find_map(|ip| ip.parse().ok()).filter(|_| has_address),
            ports: pod::named_ports(&pod.spec).filter_map(named).collect(),
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

/// Returns a port with a name; `None` if its protocol is not of those that Services have.
fn named(port: &ContainerPort) -> Option<(Box<str>, Protocol, u16)> {
    let number = port.container_port.try_into().ok()?;
    Some((
        port.name.as_str().into(),
        Protocol::of(&port.protocol)?,
        number,
    ))
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
