//! Plan: from a Service and its endpoints to what is to be programmed. Pure.
#![warn(clippy::arithmetic_side_effects)]

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use crate::endpoints::{self, Pools};
use crate::service::{Port, ServiceView, TrafficPolicy};
use crate::{Chain, Front, FrontPlan, Place, PortId, PortPlan, Refusal, ServicePlan, SliceView};

/// Everything that the traffic of a Service depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Service.
    pub service: Arc<ServiceView>,
    /// Its EndpointSlices, in any order.
    pub slices: Vec<Arc<SliceView>>,
    /// The place of the proxy.
    pub place: Arc<Place>,
    /// Whether addresses of `externalIPs` are answered.
    pub external_ips: bool,
}

/// Returns what is to be programmed for a Service: nothing for one without an address.
pub fn plan(world: &World) -> ServicePlan {
    let Some(cluster_ip) = world.service.cluster_ip else {
        return ServicePlan::default();
    };
    let ports = world.service.ports.iter();
    let ports = ports.map(|port| Arc::new(port_plan(world, cluster_ip, port)));
    ServicePlan {
        ports: ports.collect(),
    }
}

fn port_plan(world: &World, cluster_ip: Ipv4Addr, port: &Port) -> PortPlan {
    let service = &world.service;
    let pools = endpoints::pools(&world.slices, &world.place, port);
    let mut fronts = vec![FrontPlan {
        at: Front::Address(SocketAddrV4::new(cluster_ip, port.port)),
        action: internal(service.internal, &pools),
    }];
    fronts.extend(external_fronts(world, port, &pools));
    let has = |chain| fronts.iter().any(|front| front.action == Ok(chain));
    let (internal_local, external) = (has(Chain::Local), has(Chain::External));
    let external = external || has(Chain::Balancer);
    let is_local = service.external == TrafficPolicy::Local;
    // Clients on this machine reach all endpoints, whatever the external policy.
    let uses_cluster = has(Chain::Cluster) || external;
    let uses_local = internal_local || (external && is_local);
    PortPlan {
        id: PortId {
            service: service.meta.key.clone(),
            name: port.name.clone(),
            protocol: port.protocol,
        },
        affinity: service.affinity,
        external: external.then_some(service.external),
        source_ranges: match has(Chain::Balancer) {
            true => service.source_ranges.clone(),
            false => Vec::new(),
        },
        cluster: pools.cluster.into_iter().filter(|_| uses_cluster).collect(),
        local: pools.local.into_iter().filter(|_| uses_local).collect(),
        fronts,
    }
}

/// Returns the action on connections to the address of the Service in the cluster.
fn internal(policy: TrafficPolicy, pools: &Pools) -> Result<Chain, Refusal> {
    match policy {
        _ if pools.is_empty() => Err(Refusal::Reject),
        TrafficPolicy::Cluster => Ok(Chain::Cluster),
        TrafficPolicy::Local if pools.local.is_empty() => Err(Refusal::Drop),
        TrafficPolicy::Local => Ok(Chain::Local),
    }
}

fn external_fronts(world: &World, port: &Port, pools: &Pools) -> Vec<FrontPlan> {
    let service = &world.service;
    let at = |ip: &Ipv4Addr| Front::Address(SocketAddrV4::new(*ip, port.port));
    let allowed = service.external_ips.iter().filter(|_| world.external_ips);
    let nodes = port.node_port.map(Front::Node);
    let unguarded = allowed.map(at).chain(nodes);
    let unguarded = unguarded.map(|front| (front, Chain::External));
    let balancer = match service.source_ranges.is_empty() {
        true => Chain::External,
        false => Chain::Balancer,
    };
    let balanced = service.load_balancer_ips.iter().map(at);
    let all = unguarded.chain(balanced.map(|front| (front, balancer)));
    let plan = |(at, chain)| FrontPlan {
        at,
        action: match pools.is_empty() {
            true => Err(Refusal::Reject),
            false => Ok(chain),
        },
    };
    all.map(plan).collect()
}
