//! The endpoints of a Service without a selector: those of its Endpoints.

use setpoint_proto::core::{EndpointAddress, EndpointSubset};
use setpoint_proto::discovery::{Endpoint, EndpointConditions, EndpointPort};

use crate::{Family, Group};

/// Returns the groups of the subsets of Endpoints.
pub fn groups(subsets: &[EndpointSubset]) -> Vec<Group> {
    let mut groups = Vec::new();
    for subset in subsets {
        let ports: Vec<_> = subset.ports.iter().map(port).collect();
        let ready = subset.addresses.iter().map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter();
        for (address, ready) in ready.chain(unready.map(|address| (address, false))) {
            if let Some(family) = Family::of(&address.ip) {
                Group::add(&mut groups, family, ports.clone(), endpoint(address, ready));
            }
        }
    }
    groups
}

fn port(port: &setpoint_proto::core::EndpointPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.port),
        app_protocol: port.app_protocol.clone(),
    }
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    let hostname = &address.hostname;
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: EndpointConditions {
            ready: Some(ready),
            ..Default::default()
        },
        hostname: (!hostname.is_empty()).then(|| hostname.clone()),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        ..Default::default()
    }
}
