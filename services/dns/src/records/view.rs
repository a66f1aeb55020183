//! Views of the objects that names come from: what answers need, and no more.

use std::net::IpAddr;

use setpoint_controller::View;
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_model::{Meta, pod};
use setpoint_proto::core::{Namespace, Pod, Service};
use setpoint_proto::discovery::EndpointSlice;

/// A namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceView {
    meta: Meta,
}

impl View for NamespaceView {
    type Object = Namespace;

    fn of(namespace: Namespace) -> Self {
        Self {
            meta: Meta::identity(&namespace.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, also where no protocol is given.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    fn of(name: &str) -> Self {
        match name {
            "UDP" => Self::Udp,
            "SCTP" => Self::Sctp,
            _ => Self::Tcp,
        }
    }

    /// Returns the protocol of a name in lower case, as in `_tcp`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "tcp" => Some(Self::Tcp),
            "udp" => Some(Self::Udp),
            "sctp" => Some(Self::Sctp),
            _ => None,
        }
    }
}

/// A port of a Service or a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name; empty for a port without one.
    pub name: Box<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The number; `None` for all ports.
    pub number: Option<u16>,
}

impl Port {
    fn new(name: &str, protocol: &str, number: Option<i32>) -> Self {
        Self {
            name: name.into(),
            protocol: Protocol::of(protocol),
            number: number.and_then(|number| number.try_into().ok()),
        }
    }
}

/// The addresses that the name of a Service stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Its cluster IPs.
    ClusterIps(Box<[IpAddr]>),
    /// Those of its ready endpoints.
    Endpoints,
    /// Those of another name.
    ExternalName(Box<str>),
}

/// A Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceView {
    meta: Meta,
    /// The addresses of its name.
    pub target: Target,
    /// Its ports, in the order of the object.
    pub ports: Box<[Port]>,
}

impl ServiceView {
    /// Returns the cluster IPs.
    pub fn cluster_ips(&self) -> impl Iterator<Item = IpAddr> {
        let ips: &[IpAddr] = match &self.target {
            Target::ClusterIps(ips) => ips,
            _ => &[],
        };
        ips.iter().copied()
    }
}

impl View for ServiceView {
    type Object = Service;

    fn of(service: Service) -> Self {
        let spec = service.spec;
        let first = [spec.cluster_ip];
        let ips = first.iter().chain(spec.cluster_ips.iter().skip(1));
        let ips: Box<[IpAddr]> = ips.filter_map(|ip| ip.parse().ok()).collect();
        let target = match &*spec.r#type {
            "ExternalName" => Target::ExternalName(spec.external_name.into()),
            _ if ips.is_empty() => Target::Endpoints,
            _ => Target::ClusterIps(ips),
        };
        let ports = spec.ports.iter();
        let ports = ports.map(|port| Port::new(&port.name, &port.protocol, Some(port.port)));
        Self {
            meta: Meta::identity(&service.metadata),
            target,
            ports: ports.collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// A ready endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// The name that it was given.
    pub hostname: Option<Box<str>>,
}

/// The ready endpoints of a slice. Those of a Service with `publishNotReadyAddresses` are all ready there.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceView {
    meta: Meta,
    /// The name of its Service, in the same namespace.
    pub service: Box<str>,
    /// The ready endpoints, one for each address.
    pub endpoints: Box<[Endpoint]>,
    /// The ports of all endpoints.
    pub ports: Box<[Port]>,
}

impl SliceView {
    /// Returns the addresses of the ready endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.endpoints.iter().map(|endpoint| endpoint.address)
    }
}

impl View for SliceView {
    type Object = EndpointSlice;

    fn of(slice: EndpointSlice) -> Self {
        let service = slice.metadata.labels.get(SERVICE_NAME);
        let ready = slice.endpoints.iter();
        let ready = ready.filter(|endpoint| endpoint.conditions.ready != Some(false));
        let endpoints = ready.flat_map(|endpoint| {
            let addresses = endpoint.addresses.iter();
            addresses.filter_map(|address| {
                let hostname = endpoint.hostname.as_deref().filter(|name| !name.is_empty());
                Some(Endpoint {
                    address: address.parse().ok()?,
                    hostname: hostname.map(Into::into),
                })
            })
        });
        let ports = slice.ports.iter().map(|port| {
            let (name, protocol) = (port.name.as_deref(), port.protocol.as_deref());
            Port::new(
                name.unwrap_or_default(),
                protocol.unwrap_or_default(),
                port.port,
            )
        });
        Self {
            service: service.map(|name| &**name).unwrap_or_default().into(),
            endpoints: endpoints.collect(),
            ports: ports.collect(),
            meta: Meta::identity(&slice.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// A Pod with its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    meta: Meta,
    addresses: Box<[IpAddr]>,
}

impl PodView {
    /// Returns the addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied()
    }
}

impl View for PodView {
    type Object = Pod;

    fn of(pod: Pod) -> Self {
        // A Pod in the network of its node shares the addresses of that.
        let none = pod::is_terminal(&pod) || pod.spec.host_network;
        Self {
            addresses: pod::ips(&pod.status)
                .filter(|_| !none)
                .filter_map(|ip| ip.parse().ok())
                .collect(),
            meta: Meta::identity(&pod.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
