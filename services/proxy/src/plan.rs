//! Plan: from a Service and its endpoints to what is to be programmed. Pure.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use crate::endpoints::{Candidates, Pools};
use crate::service::{Port, ServiceView, TrafficPolicy};
use crate::{
    Chain, Front, FrontPlan, Place, PortId, PortPlan, Refusal, ServicePlan, SitePools, SliceView,
    Way,
};

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
    let pools = Ports::of(world, port);
    let mut fronts = internal_fronts(service, SocketAddrV4::new(cluster_ip, port.port), &pools);
    fronts.extend(external_fronts(world, port, &pools));
    let is_way = |front: &FrontPlan, chain| front.action.is_ok_and(|way| way.chain == chain);
    let has = |chain| fronts.iter().any(|front| is_way(front, chain));
    let external = has(Chain::External) || has(Chain::Balancer);
    let whole = |chain| {
        let way = Ok(Way::whole(chain));
        fronts.iter().any(|front| front.action == way)
    };
    let is_local = service.external == TrafficPolicy::Local;
    // Clients on this machine reach all endpoints, whatever the external policy.
    let uses_cluster = whole(Chain::Cluster) || external;
    let external_whole = whole(Chain::External) || whole(Chain::Balancer);
    let uses_local = whole(Chain::Local) || (external_whole && is_local);
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
        sites: site_pools(&fronts, &pools, is_local),
        cluster: list(&pools.whole.cluster, uses_cluster),
        local: list(&pools.whole.local, uses_local),
        fronts,
    }
}

fn list(pool: &BTreeSet<SocketAddrV4>, used: bool) -> Vec<SocketAddrV4> {
    pool.iter().copied().filter(|_| used).collect()
}

/// The endpoints of a port, for clients of the whole machine and of its sites.
struct Ports {
    whole: Pools,
    /// Those of sites; none if they do not matter.
    sites: BTreeMap<u16, Pools>,
}

impl Ports {
    fn of(world: &World, port: &Port) -> Self {
        let candidates = Candidates::of(&world.slices, port);
        let (place, service) = (&world.place, &world.service);
        let policies = [service.internal, service.external];
        let matter = policies.contains(&TrafficPolicy::Local) || candidates.have_hints();
        let sites = place.sites.iter().filter(|_| matter);
        Self {
            whole: candidates.pools(&place.area()),
            sites: sites
                .map(|(number, site)| (*number, candidates.pools(&site.area())))
                .collect(),
        }
    }

    /// Returns whether the clients of a site reach other endpoints of the cluster than those of the whole machine.
    fn have_own_cluster(&self, site: u16) -> bool {
        let own = self.sites.get(&site);
        own.is_some_and(|own| own.cluster != self.whole.cluster)
    }
}

/// Returns the endpoints of the sites that fronts lead to, as far as they are used.
fn site_pools(fronts: &[FrontPlan], pools: &Ports, is_local: bool) -> BTreeMap<u16, SitePools> {
    let mut used = BTreeMap::<u16, SitePools>::new();
    for way in fronts.iter().filter_map(|front| front.action.ok()) {
        let Some((site, own)) = way
            .site
            .and_then(|site| Some((site, pools.sites.get(&site)?)))
        else {
            continue;
        };
        let entry = used.entry(site).or_default();
        let is_external = matches!(way.chain, Chain::External | Chain::Balancer);
        if way.chain == Chain::Local || (is_external && is_local) {
            entry.local = list(&own.local, true);
        }
        if way.chain != Chain::Local && own.cluster != pools.whole.cluster {
            entry.cluster = Some(list(&own.cluster, true));
        }
    }
    used
}

/// Returns the fronts of the address of a Service in the cluster: for all clients, and for those of sites where that
/// makes a difference.
fn internal_fronts(service: &ServiceView, at: SocketAddrV4, pools: &Ports) -> Vec<FrontPlan> {
    let policy = service.internal;
    let mut fronts = vec![FrontPlan {
        at: Front::Address(at),
        action: internal(policy, &pools.whole).map(Way::whole),
    }];
    let differs = |own: &Pools| match policy {
        TrafficPolicy::Cluster => own.cluster != pools.whole.cluster,
        TrafficPolicy::Local => own.local != pools.whole.local,
    };
    let sites = pools.sites.iter().filter(|(_, own)| differs(own));
    fronts.extend(sites.map(|(site, own)| FrontPlan {
        at: Front::From(*site, at),
        action: internal(policy, own).map(|chain| Way {
            chain,
            site: Some(*site),
        }),
    }));
    fronts
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

fn external_fronts(world: &World, port: &Port, pools: &Ports) -> Vec<FrontPlan> {
    let service = &world.service;
    let is_local = service.external == TrafficPolicy::Local;
    let own = |site: &u16| is_local || pools.have_own_cluster(*site);
    let site_of = |ip: Ipv4Addr| world.place.site_at(ip).filter(own);
    let at = |ip: &Ipv4Addr| {
        (
            Front::Address(SocketAddrV4::new(*ip, port.port)),
            site_of(*ip),
        )
    };
    let allowed = service.external_ips.iter().filter(|_| world.external_ips);
    let nodes = port.node_port.map(|port| (Front::Node(port), None));
    let sites = port.node_port.into_iter().flat_map(|port| {
        let sites = world
            .place
            .sites
            .iter()
            .filter(|(_, site)| !site.fronts.is_empty());
        let sites = sites.filter(|(site, _)| !pools.whole.is_empty() && own(site));
        sites.map(move |(site, _)| (Front::NodeOf(*site, port), Some(*site)))
    });
    let unguarded = allowed.map(at).chain(nodes).chain(sites);
    let unguarded = unguarded.map(|place| (place, Chain::External));
    let balancer = match service.source_ranges.is_empty() {
        true => Chain::External,
        false => Chain::Balancer,
    };
    let balanced = service.load_balancer_ips.iter().map(at);
    let all = unguarded.chain(balanced.map(|place| (place, balancer)));
    let plan = |((at, site), chain)| FrontPlan {
        at,
        action: match pools.whole.is_empty() {
            true => Err(Refusal::Reject),
            false => Ok(Way { chain, site }),
        },
    };
    all.map(plan).collect()
}
