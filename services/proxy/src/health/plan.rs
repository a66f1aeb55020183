//! The addresses of a health check, and the number of endpoints that each reports. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::World;
use crate::endpoints::Area;

/// The health check of a Service: the numbers of ready endpoints, by the addresses that report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthCheck {
    /// The numbers of different addresses of ready endpoints.
    pub endpoints: BTreeMap<SocketAddrV4, usize>,
}

/// Returns the health check of a Service; `None` if it has none.
///
/// An address of one of several nodes reports the endpoints of that node, another one those of all nodes of the
/// machine.
pub fn health_check(world: &World) -> Option<HealthCheck> {
    let port = world.service.health_check_port?;
    let place = &world.place;
    let sites = place.sites.values();
    let of_sites = sites.flat_map(|site| {
        let count = count(world, &site.area());
        site.fronts.iter().map(move |ip| (*ip, count))
    });
    let mut endpoints: BTreeMap<_, _> = of_sites.collect();
    let all = count(world, &place.area());
    let hosts = place
        .addresses
        .iter()
        .map(|range| range.to_string().parse().ok());
    match hosts.collect::<Option<Vec<Ipv4Addr>>>() {
        Some(hosts) => hosts
            .into_iter()
            .for_each(|ip| _ = endpoints.entry(ip).or_insert(all)),
        // A port at all addresses leaves none for one of them.
        None if endpoints.is_empty() => _ = endpoints.insert(Ipv4Addr::UNSPECIFIED, all),
        None => {}
    }
    let at = |(ip, count)| (SocketAddrV4::new(ip, port), count);
    Some(HealthCheck {
        endpoints: endpoints.into_iter().map(at).collect(),
    })
}

fn count(world: &World, area: &Area<'_>) -> usize {
    let endpoints = world.slices.iter().flat_map(|slice| &slice.endpoints);
    let ready = endpoints.filter(|one| one.ready && area.has(&one.node));
    let addresses: BTreeSet<_> = ready.filter_map(|one| one.address).collect();
    addresses.len()
}
