//! The endpoints of a Service with a selector: its Pods.

use setpoint_controller::View;
use setpoint_model::ip::endpoint_problems;
use setpoint_model::{Labels, Meta, pod};
use setpoint_proto::core::{self, ContainerPort, ObjectReference, Service, ServicePort};
use setpoint_proto::discovery::{Endpoint, EndpointConditions, EndpointPort};
use setpoint_proto::{Resource as _, meta::IntOrString};

use crate::topology::{self, Zones};
use crate::{Family, Group};

/// The fields of a Pod that an endpoint depends on. Kept small, since all Pods of the cluster are cached.
#[derive(Clone, Debug, PartialEq)]
pub struct PodView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The labels in a compact form.
    pub labels: Labels,
    /// Its addresses; none once it has ended.
    pub ips: Box<[Box<str>]>,
    /// The node that it is bound to.
    pub node: Option<Box<str>>,
    /// The hostname and the subdomain, if it has both.
    pub hostname: Option<(Box<str>, Box<str>)>,
    /// Whether it is ready.
    pub ready: bool,
    /// The ports with names, which Services may refer to.
    pub ports: Box<[NamedPort]>,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPort {
    name: Box<str>,
    protocol: Box<str>,
    number: i32,
}

impl View for PodView {
    type Object = core::Pod;

    fn of(pod: core::Pod) -> Self {
        let mut meta = Meta::of(&pod.metadata);
        meta.annotations.clear();
        let has_ended = pod::is_terminal(&pod);
        let spec = &pod.spec;
        let has_hostname = !spec.hostname.is_empty() && !spec.subdomain.is_empty();
        Self {
            labels: std::mem::take(&mut meta.labels).into(),
            meta,
            ips: match has_ended {
                true => Box::default(),
                false => pod::ips(&pod.status).map(Box::from).collect(),
            },
            node: (!spec.node_name.is_empty()).then(|| spec.node_name.as_str().into()),
            hostname: has_hostname.then(|| {
                let (name, domain) = (spec.hostname.as_str(), spec.subdomain.as_str());
                (name.into(), domain.into())
            }),
            ready: pod::is_ready(&pod),
            ports: pod::named_ports(spec).map(NamedPort::of).collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl NamedPort {
    fn of(port: &ContainerPort) -> Self {
        Self {
            name: port.name.as_str().into(),
            protocol: port.protocol.as_str().into(),
            number: port.container_port,
        }
    }
}

/// Returns the problem of the first address to which no Service may forward: validation would refuse a slice that has
/// it.
pub(crate) fn refused<'p>(pods: impl IntoIterator<Item = &'p PodView>) -> Option<String> {
    pods.into_iter().find_map(|pod| {
        let mut ips = pod.ips.iter().map(|ip| &**ip);
        let (ip, problem) = ips.find_map(|ip| Some((ip, problems(ip).into_iter().next()?)))?;
        let name = &pod.meta.key.name;
        Some(format!("address {ip} of Pod {name} {problem}"))
    })
}

fn problems(ip: &str) -> Vec<String> {
    let address = ip.parse();
    address.map_or_else(|_| Vec::new(), |address| endpoint_problems(ip, address))
}

/// Returns the groups of the Pods that a Service selects, for each family that it has. A Pod that is being deleted is
/// an endpoint until it has ended; one that lacks a named port is none of that port, and one with an address to which
/// no Service may forward is none.
pub fn groups<'p>(
    service: &Service,
    pods: impl IntoIterator<Item = &'p PodView>,
    zones: &Zones,
) -> Vec<Group> {
    let mut groups = Vec::new();
    let wants = |family: Family| match service.spec.ip_families.as_slice() {
        [] => family == Family::V4,
        families => families.iter().any(|wanted| wanted == family.name()),
    };
    for pod in pods {
        let ports = ports(service, pod);
        // A headless Service may have no ports.
        if ports.is_empty() && !service.spec.ports.is_empty() {
            continue;
        }
        let mut families = Vec::new();
        for ip in &pod.ips {
            let Some(family) = Family::of(ip).filter(|family| wants(*family)) else {
                continue;
            };
            if !problems(ip).is_empty() {
                continue;
            }
            if !families.contains(&family) {
                families.push(family);
                let mut endpoint = endpoint(service, pod, ip);
                topology::complete(&mut endpoint, service, zones);
                Group::add(&mut groups, family, ports.clone(), endpoint);
            }
        }
    }
    groups
}

/// Returns the ports of a Service that a Pod has.
fn ports(service: &Service, pod: &PodView) -> Vec<EndpointPort> {
    let ports = service.spec.ports.iter();
    let found = ports.filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(port.protocol.clone()),
            port: Some(number(port, pod)?),
            app_protocol: port.app_protocol.clone(),
        })
    });
    found.collect()
}

fn number(port: &ServicePort, pod: &PodView) -> Option<i32> {
    let target: &IntOrString = &port.target_port;
    let Some(name) = target.as_str() else {
        return Some(target.int_val);
    };
    let mut named = pod.ports.iter();
    let found = named.find(|one| *one.name == *name && *one.protocol == *port.protocol)?;
    Some(found.number)
}

fn endpoint(service: &Service, pod: &PodView, ip: &str) -> Endpoint {
    let (serving, terminating) = (pod.ready, pod.meta.deleting);
    let published = service.spec.publish_not_ready_addresses;
    let of_service = |(_, subdomain): &&(Box<str>, Box<str>)| **subdomain == *service.metadata.name;
    let hostname = pod.hostname.as_ref().filter(of_service);
    Endpoint {
        addresses: vec![ip.to_owned()],
        conditions: EndpointConditions {
            ready: Some(published || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        },
        hostname: hostname.map(|(name, _)| name.to_string()),
        target_ref: Some(ObjectReference {
            kind: core::Pod::KIND.to_owned(),
            namespace: pod.meta.key.namespace.clone(),
            name: pod.meta.key.name.clone(),
            uid: pod.meta.uid.clone(),
            ..Default::default()
        }),
        node_name: pod.node.as_deref().map(str::to_owned),
        ..Default::default()
    }
}
