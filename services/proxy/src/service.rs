//! The fields of a Service that its traffic depends on.

use std::net::Ipv4Addr;

use setpoint_controller::View;
use setpoint_model::{Cidr, Meta};
use setpoint_proto::core::{LoadBalancerIngress, Service};

/// The label of Services and slices that another proxy implements.
pub(crate) const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
/// The time for which a client stays with its endpoint, unless the Service says otherwise.
const AFFINITY_SECONDS: u32 = 10_800;

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Parses its name in the API, which is TCP if it is empty; `None` for others.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "" | "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            "SCTP" => Some(Self::Sctp),
            _ => None,
        }
    }

    /// Returns its number in the header of IP.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// Returns its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// The endpoints that connections of a kind may be forwarded to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrafficPolicy {
    /// All of the cluster.
    #[default]
    Cluster,
    /// Those of the nodes of this machine.
    Local,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; empty for the only one.
    pub name: Box<str>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
    /// The number at which the nodes accept connections.
    pub node_port: Option<u16>,
}

/// A Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// Its address in the cluster; `None` for one that is headless or only a name.
    pub cluster_ip: Option<Ipv4Addr>,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Its addresses outside of the cluster that an administrator has chosen.
    pub external_ips: Vec<Ipv4Addr>,
    /// The addresses of its load balancer, if this machine is to answer at them.
    pub load_balancer_ips: Vec<Ipv4Addr>,
    /// The clients that may use its load balancer; empty for all.
    pub source_ranges: Vec<Cidr>,
    /// The number of seconds for which a client stays with its endpoint; `None` without affinity.
    pub affinity: Option<u32>,
    /// The policy of connections to its address in the cluster.
    pub internal: TrafficPolicy,
    /// The policy of connections from outside.
    pub external: TrafficPolicy,
    /// The port of the health checks of its load balancer.
    pub health_check_port: Option<u16>,
}

impl View for ServiceView {
    type Object = Service;

    fn of(service: Service) -> Self {
        let spec = &service.spec;
        let ingress = service.status.load_balancer.ingress.iter();
        let is_balanced = spec.r#type == "LoadBalancer";
        Self {
            meta: Meta::identity(&service.metadata),
            cluster_ip: cluster_ip(&service),
            ports: ports(&service),
            external_ips: addresses(spec.external_ips.iter()),
            load_balancer_ips: addresses(ingress.filter(|one| is_balanced && is_vip(one)).map(ip)),
            source_ranges: ranges(&service),
            affinity: affinity(&service),
            internal: policy(spec.internal_traffic_policy.as_deref()),
            external: policy(Some(&spec.external_traffic_policy)),
            health_check_port: health_check_port(&service),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

fn cluster_ip(service: &Service) -> Option<Ipv4Addr> {
    let spec = &service.spec;
    if service.metadata.labels.contains_key(PROXY_NAME) {
        return None;
    }
    // Services of two families have the other one in the list.
    let all = std::iter::once(&spec.cluster_ip).chain(&spec.cluster_ips);
    let mut addresses = all.filter_map(|ip| ip.parse().ok());
    addresses.next().filter(|_| spec.r#type != "ExternalName")
}

fn ports(service: &Service) -> Vec<Port> {
    let ports = service.spec.ports.iter();
    let port = |port: &setpoint_proto::core::ServicePort| {
        Some(Port {
            name: port.name.as_str().into(),
            protocol: Protocol::of(&port.protocol)?,
            port: number(port.port)?,
            node_port: number(port.node_port),
        })
    };
    ports.filter_map(port).collect()
}

/// Returns the port of health checks of a Service that is implemented here and has some.
fn health_check_port(service: &Service) -> Option<u16> {
    let spec = &service.spec;
    let is_checked = spec.r#type == "LoadBalancer" && spec.external_traffic_policy == "Local";
    let port = number(spec.health_check_node_port)?;
    cluster_ip(service).filter(|_| is_checked).map(|_| port)
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}

fn addresses<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<Ipv4Addr> {
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// Whether connections reach the nodes with the address of the load balancer as their destination.
fn is_vip(ingress: &LoadBalancerIngress) -> bool {
    ingress.ip_mode.as_deref() != Some("Proxy")
}

fn ip(ingress: &LoadBalancerIngress) -> &String {
    &ingress.ip
}

fn ranges(service: &Service) -> Vec<Cidr> {
    let ranges = service.spec.load_balancer_source_ranges.iter();
    ranges.filter_map(|range| range.parse().ok()).collect()
}

fn affinity(service: &Service) -> Option<u32> {
    let spec = &service.spec;
    let config = spec.session_affinity_config.as_ref();
    let seconds = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds > 0);
    (spec.session_affinity == "ClientIP").then(|| seconds.unwrap_or(AFFINITY_SECONDS))
}

fn policy(name: Option<&str>) -> TrafficPolicy {
    match name {
        Some("Local") => TrafficPolicy::Local,
        _ => TrafficPolicy::Cluster,
    }
}
