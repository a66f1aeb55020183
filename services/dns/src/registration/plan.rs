//! Plan: the objects that this replica writes. Pure.

use std::net::IpAddr;

use setpoint_controller::Plan;
use setpoint_model::endpointslice;
use setpoint_proto::core::{Service, ServicePort, ServiceSpec};
use setpoint_proto::discovery::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use setpoint_proto::meta::ObjectMeta;

use super::world::{Replica, World};
use super::{MANAGED_BY, NAMESPACE, SERVICE};
use crate::forward::PORT;

/// One idempotent write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Creates the Service.
    CreateService(Box<Service>),
    /// Creates the slice of this replica.
    CreateSlice(Box<EndpointSlice>),
    /// Replaces the slice of this replica, at the version that it has.
    UpdateSlice(Box<EndpointSlice>),
    /// Deletes a slice.
    DeleteSlice {
        /// The name.
        name: String,
        /// The uid that it must have.
        uid: String,
    },
}

/// Returns the writes that are missing.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.me.serves && !world.has_service {
        let service = service(&world.cluster_ip);
        plan.step(
            Action::CreateService(Box::new(service)),
            "the cluster has no DNS Service",
        );
    }
    own_slice(world, &mut plan);
    let own = world.me.slice();
    for slice in &world.slices {
        let name = &slice.meta.key.name;
        let lease = name
            .strip_prefix(SERVICE)
            .and_then(|rest| rest.strip_prefix('-'));
        let present = lease.is_some_and(|lease| world.renewals.is_present(lease));
        // A replica has a Lease before its slice, which may be known here first.
        let is_known = slice.meta.revision <= world.reached;
        if *name != own && !present && is_known {
            let delete = Action::DeleteSlice {
                name: name.clone(),
                uid: slice.meta.uid.clone(),
            };
            plan.step(delete, "its replica has ended");
        }
    }
    plan
}

fn own_slice(world: &World, plan: &mut Plan<Action>) {
    let name = world.me.slice();
    let present = world
        .slices
        .iter()
        .find(|slice| slice.meta.key.name == name);
    let wanted = wanted(&world.me);
    match (present, wanted) {
        // Without a Lease, others would remove it.
        (None, Some(slice)) if world.renewals.is_present(&world.me.lease) => {
            plan.step(
                Action::CreateSlice(Box::new(slice)),
                "this replica is ready",
            );
        }
        (Some(present), Some(slice)) if !is_same(&present.object, &slice) => {
            let mut changed = present.object.clone();
            changed.metadata.labels.extend(slice.metadata.labels);
            changed.endpoints = slice.endpoints;
            changed.ports = slice.ports;
            plan.step(
                Action::UpdateSlice(Box::new(changed)),
                "this replica has changed",
            );
        }
        (Some(present), None) => {
            let uid = present.meta.uid.clone();
            let delete = Action::DeleteSlice { name, uid };
            plan.step(delete, "this replica does not answer");
        }
        _ => {}
    }
}

fn is_same(present: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let labels = &present.metadata.labels;
    let mut wanted_labels = wanted.metadata.labels.iter();
    present.endpoints == wanted.endpoints
        && present.ports == wanted.ports
        && wanted_labels.all(|(name, value)| labels.get(name) == Some(value))
}

/// Returns the slice of a replica; `None` for one that nobody is to ask, or can: an address of the loopback is another
/// machine for each who reads it.
fn wanted(me: &Replica) -> Option<EndpointSlice> {
    let reachable = !me.address.is_loopback() && !me.address.is_unspecified();
    if !me.serves || !reachable {
        return None;
    }
    let labels = [
        (endpointslice::SERVICE_NAME, SERVICE),
        (endpointslice::MANAGED_BY, MANAGED_BY),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let family = match me.address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    };
    Some(EndpointSlice {
        metadata: ObjectMeta {
            namespace: NAMESPACE.to_owned(),
            name: me.slice(),
            labels: labels.into(),
            ..ObjectMeta::default()
        },
        endpoints: vec![Endpoint {
            addresses: vec![me.address.to_string()],
            conditions: EndpointConditions {
                ready: Some(true),
                serving: Some(true),
                terminating: Some(false),
            },
            ..Endpoint::default()
        }],
        ports: ports()
            .map(|(name, protocol)| EndpointPort {
                name: Some(name.to_owned()),
                protocol: Some(protocol.to_owned()),
                port: Some(me.port.into()),
                app_protocol: None,
            })
            .into(),
        address_type: family.to_owned(),
    })
}

/// Returns the Service, with the labels and ports that kubeadm gives it.
fn service(cluster_ip: &str) -> Service {
    let labels = [
        ("k8s-app", SERVICE),
        ("kubernetes.io/cluster-service", "true"),
        ("kubernetes.io/name", "CoreDNS"),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Service {
        metadata: ObjectMeta {
            namespace: NAMESPACE.to_owned(),
            name: SERVICE.to_owned(),
            labels: labels.into(),
            ..ObjectMeta::default()
        },
        spec: ServiceSpec {
            cluster_ip: cluster_ip.to_owned(),
            ports: ports()
                .map(|(name, protocol)| ServicePort {
                    name: name.to_owned(),
                    protocol: protocol.to_owned(),
                    port: PORT.into(),
                    ..ServicePort::default()
                })
                .into(),
            ..ServiceSpec::default()
        },
        ..Service::default()
    }
}

fn ports() -> [(&'static str, &'static str); 2] {
    [("dns", "UDP"), ("dns-tcp", "TCP")]
}
