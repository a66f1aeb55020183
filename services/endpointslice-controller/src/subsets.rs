//! The form of endpoints in Endpoints: subsets.

use setpoint_proto::core::{EndpointAddress, EndpointPort, EndpointSubset, Service};
use setpoint_proto::discovery::{self, Endpoint};

use crate::Group;

/// The addresses that Endpoints have at most.
const MAX: usize = 1_000;
/// The annotation of Endpoints that lack addresses because of the maximum.
pub(crate) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// Returns the subsets of the first family of a Service, and whether endpoints were left out because there are too
/// many. Pods that are being deleted are left out, unless the Service publishes addresses that are not ready.
pub(crate) fn of(service: &Service, groups: &[Group]) -> (Vec<EndpointSubset>, bool) {
    let families = &service.spec.ip_families;
    let first = families.first().map_or("IPv4", String::as_str);
    let mut room = MAX;
    let mut complete = true;
    let mut subsets = Vec::new();
    for group in groups.iter().filter(|group| group.family.name() == first) {
        let mut listed: Vec<&Endpoint> = group.endpoints.iter().collect();
        listed.retain(|one| {
            one.conditions.ready == Some(true) || one.conditions.terminating != Some(true)
        });
        // Those that are ready are the last to be left out.
        listed.sort_by_key(|one| (one.conditions.ready != Some(true), one.addresses.clone()));
        complete &= listed.len() <= room;
        listed.truncate(room);
        room = room.saturating_sub(listed.len());
        if !listed.is_empty() {
            subsets.push(subset(group, &listed));
        }
    }
    (subsets, !complete)
}

fn subset(group: &Group, endpoints: &[&Endpoint]) -> EndpointSubset {
    let is_ready = |one: &&&Endpoint| one.conditions.ready == Some(true);
    let (ready, unready): (Vec<&Endpoint>, Vec<_>) = endpoints.iter().partition(is_ready);
    EndpointSubset {
        addresses: ready.into_iter().map(address).collect(),
        not_ready_addresses: unready.into_iter().map(address).collect(),
        ports: group.ports.iter().map(port).collect(),
    }
}

fn address(endpoint: &Endpoint) -> EndpointAddress {
    EndpointAddress {
        ip: endpoint.addresses.first().cloned().unwrap_or_default(),
        target_ref: endpoint.target_ref.clone(),
        hostname: endpoint.hostname.clone().unwrap_or_default(),
        node_name: endpoint.node_name.clone(),
    }
}

fn port(port: &discovery::EndpointPort) -> EndpointPort {
    EndpointPort {
        name: port.name.clone().unwrap_or_default(),
        port: port.port.unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_default(),
        app_protocol: port.app_protocol.clone(),
    }
}
