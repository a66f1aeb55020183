//! The fields of an EndpointSlice that traffic depends on.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::endpointslice::{HEADLESS, SERVICE_NAME};
use setpoint_model::{Key, Meta};
use setpoint_proto::discovery::{self, EndpointSlice};

use crate::Protocol;
use crate::service::PROXY_NAME;

/// The annotation with the time of the change that the last write of the slice followed from.
const LAST_CHANGE: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// A port of all endpoints of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPort {
    /// The name, which is that of the port of the Service.
    pub name: Box<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The number.
    pub port: u16,
}

/// An endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The first of its addresses, which is the one that counts; `None` if it is not of IPv4.
    pub address: Option<Ipv4Addr>,
    /// Whether it accepts new connections.
    pub ready: bool,
    /// Whether it answers, even if it ends.
    pub serving: bool,
    /// Whether it ends.
    pub terminating: bool,
    /// The name of its node.
    pub node: Box<str>,
    /// The nodes whose clients it should serve.
    pub for_nodes: Vec<Box<str>>,
    /// The zones whose clients it should serve.
    pub for_zones: Vec<Box<str>>,
}

/// An EndpointSlice.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceView {
    /// The identity.
    pub meta: Meta,
    /// Its Service; `None` if it is not to be implemented here.
    pub service: Option<Key>,
    /// The ports.
    pub ports: Vec<EndpointPort>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// The time of the change that its last write followed from.
    pub changed: Option<Timestamp>,
}

impl View for SliceView {
    type Object = EndpointSlice;

    fn of(slice: EndpointSlice) -> Self {
        let service = service(&slice).filter(|_| slice.address_type == "IPv4");
        let changed = slice.metadata.annotations.get(LAST_CHANGE);
        let changed = changed.and_then(|time| time.parse().ok());
        Self {
            meta: Meta::identity(&slice.metadata),
            service,
            ports: slice.ports.iter().filter_map(port).collect(),
            endpoints: slice.endpoints.iter().map(endpoint).collect(),
            changed,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn tag(&self) -> Option<&str> {
        self.service.as_ref().map(|service| service.name.as_str())
    }
}

fn service(slice: &EndpointSlice) -> Option<Key> {
    let (labels, others) = (&slice.metadata.labels, [PROXY_NAME, HEADLESS]);
    if others.iter().any(|label| labels.contains_key(*label)) {
        return None;
    }
    let name = labels.get(SERVICE_NAME)?;
    Some(Key::new(&slice.metadata.namespace, name))
}

fn port(port: &discovery::EndpointPort) -> Option<EndpointPort> {
    Some(EndpointPort {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: Protocol::of(port.protocol.as_deref().unwrap_or_default())?,
        port: u16::try_from(port.port?).ok().filter(|port| *port != 0)?,
    })
}

fn endpoint(endpoint: &discovery::Endpoint) -> Endpoint {
    let conditions = &endpoint.conditions;
    let hints = endpoint.hints.as_ref();
    let nodes = hints.into_iter().flat_map(|hints| &hints.for_nodes);
    let zones = hints.into_iter().flat_map(|hints| &hints.for_zones);
    let ready = conditions.ready.unwrap_or(true);
    Endpoint {
        address: endpoint.addresses.first().and_then(|ip| ip.parse().ok()),
        ready,
        // Slices of old versions have one condition only.
        serving: conditions.serving.unwrap_or(ready),
        terminating: conditions.terminating.unwrap_or(false),
        node: endpoint.node_name.as_deref().unwrap_or_default().into(),
        for_nodes: nodes.map(|node| node.name.as_str().into()).collect(),
        for_zones: zones.map(|zone| zone.name.as_str().into()).collect(),
    }
}
