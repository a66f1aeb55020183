//! Addresses and node ports of Services: given at random among those that no other Service has.
//!
//! What is taken is read from the cache, and what was given lately is remembered, so one gateway never gives twice.
//! Two gateways could, if both drew the same number within the few milliseconds in which neither has heard of the
//! other's; nothing routes these addresses yet, so that is accepted until they are kept in the store.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use parking_lot::Mutex;
use setpoint_codec::{Object, kinds};
use setpoint_proto::core::{Service, ServiceSpec};
use setpoint_proto::{ApiError, Resource as _};

use super::kinds::is_exposed;
use super::path::Path;
use super::problems::Problems;
use super::{AtLeast, Filter, Registry, errors};

/// 10.96.0.0/16, Kubernetes' usual range for Services.
const NETWORK: u32 = u32::from_be_bytes([10, 96, 0, 0]);
/// The first and the last address of the range are no host's.
const HOSTS: std::ops::Range<u32> = 1..(1 << 16) - 1;
/// Kubernetes' usual range for ports of nodes.
const PORTS: std::ops::Range<u32> = 30_000..32_768;
/// By the time so many more have been given, the cache has seen the first.
const REMEMBERED: usize = 1024;

/// What was given lately.
#[derive(Default)]
pub(super) struct Addresses {
    lately: Mutex<VecDeque<Taken>>,
}

/// One number that a Service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Address(Ipv4Addr),
    Port(i32),
}

impl Registry {
    /// Gives a Service the address and the ports that it wants and does not have.
    ///
    /// # Errors
    /// `Invalid` when it asks for an address that another Service has.
    pub(super) async fn allot(&self, new: &mut dyn Object) -> Result<(), ApiError> {
        let kind = new.kind();
        let Some(service) = new.downcast_mut::<Service>() else {
            return Ok(());
        };
        mirror_address(&mut service.spec);
        let taken = self.taken(&service.metadata.uid).await?;
        if let Ok(address) = service.spec.cluster_ip.parse()
            && taken.contains(&Taken::Address(address))
        {
            let mut problems = Problems::default();
            let detail =
                format!("failed to allocate IP {address}: provided IP is already allocated");
            let path = Path::root("spec");
            problems.invalid(&path.field("clusterIPs"), &service.spec.cluster_ips, detail);
            problems.into_result(kind, &service.metadata.name)?;
        }
        self.addresses.give(&mut service.spec, taken);
        Ok(())
    }

    /// What other Services than this one have.
    async fn taken(&self, but: &str) -> Result<BTreeSet<Taken>, ApiError> {
        let kind = kinds()
            .by_resource(Service::RESOURCE)
            .expect("its message is compiled in");
        let services = self
            .cache
            .list(&Filter::all(kind, ""), AtLeast::Any)
            .await?;
        let mut taken = BTreeSet::new();
        for cached in services.items {
            let object = errors::readable(cached.decode())?;
            let service = object
                .downcast_ref::<Service>()
                .filter(|service| service.metadata.uid != but);
            taken.extend(
                service
                    .into_iter()
                    .flat_map(|service| numbers(&service.spec)),
            );
        }
        Ok(taken)
    }
}

impl Addresses {
    fn give(&self, spec: &mut ServiceSpec, mut taken: BTreeSet<Taken>) {
        let mut lately = self.lately.lock();
        taken.extend(lately.iter().copied());
        if spec.cluster_ip.is_empty() && spec.r#type != "ExternalName" {
            let address = |host| Taken::Address(Ipv4Addr::from(NETWORK | host));
            if let Some(given @ Taken::Address(address)) = draw(HOSTS, address, &taken) {
                spec.cluster_ip = address.to_string();
                mirror_address(spec);
                lately.push_back(given);
            }
        }
        let exposed = is_exposed(spec);
        for port in spec
            .ports
            .iter_mut()
            .filter(|port| exposed && port.node_port == 0)
        {
            let number = |port| Taken::Port(i32::try_from(port).unwrap_or_default());
            if let Some(given @ Taken::Port(number)) = draw(PORTS, number, &taken) {
                port.node_port = number;
                taken.insert(given);
                lately.push_back(given);
            }
        }
        let forget = lately.len().saturating_sub(REMEMBERED);
        lately.drain(..forget);
    }
}

/// The first free number after a random one; `None` when all are taken.
fn draw(
    range: std::ops::Range<u32>,
    as_taken: impl Fn(u32) -> Taken,
    taken: &BTreeSet<Taken>,
) -> Option<Taken> {
    let start = rand::random_range(range.clone());
    let round = (start..range.end).chain(range.start..start);
    round.map(as_taken).find(|number| !taken.contains(number))
}

/// The one address stands in a list too.
fn mirror_address(spec: &mut ServiceSpec) {
    match spec.cluster_ips.first() {
        Some(first) if spec.cluster_ip.is_empty() => spec.cluster_ip.clone_from(first),
        _ if spec.cluster_ip.is_empty() => {}
        _ => spec.cluster_ips = vec![spec.cluster_ip.clone()],
    }
}

fn numbers(spec: &ServiceSpec) -> Vec<Taken> {
    let address = spec.cluster_ip.parse().ok().map(Taken::Address);
    let ports = spec
        .ports
        .iter()
        .map(|port| port.node_port)
        .filter(|port| *port != 0);
    ports.map(Taken::Port).chain(address).collect()
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::ServicePort;

    use super::*;

    fn spec(r#type: &str) -> ServiceSpec {
        ServiceSpec {
            r#type: r#type.into(),
            ports: vec![ServicePort::default(), ServicePort::default()],
            ..Default::default()
        }
    }

    #[test]
    fn each_service_gets_an_address_of_its_own() {
        let addresses = Addresses::default();
        let mut seen = BTreeSet::new();
        for _ in 0..500 {
            let mut spec = spec("ClusterIP");
            addresses.give(&mut spec, BTreeSet::new());
            assert!(spec.cluster_ip.starts_with("10.96."));
            assert_eq!(spec.cluster_ips, [spec.cluster_ip.as_str()]);
            assert!(seen.insert(spec.cluster_ip), "given twice");
        }
    }

    #[test]
    fn ports_of_nodes_are_given_to_those_who_use_them() {
        let addresses = Addresses::default();
        let mut exposed = spec("NodePort");
        addresses.give(&mut exposed, BTreeSet::new());
        let ports = [exposed.ports[0].node_port, exposed.ports[1].node_port];
        assert!(ports.iter().all(|port| (30_000..32_768).contains(port)));
        assert_ne!(ports[0], ports[1]);
        let mut plain = spec("ClusterIP");
        addresses.give(&mut plain, BTreeSet::new());
        assert_eq!(plain.ports[0].node_port, 0);
    }

    #[test]
    fn whoever_needs_no_address_gets_none() {
        let addresses = Addresses::default();
        let mut headless = spec("ClusterIP");
        headless.cluster_ip = "None".into();
        mirror_address(&mut headless);
        addresses.give(&mut headless, BTreeSet::new());
        assert_eq!(headless.cluster_ips, ["None"]);
        let mut elsewhere = spec("ExternalName");
        addresses.give(&mut elsewhere, BTreeSet::new());
        assert_eq!(elsewhere.cluster_ip, "");
    }

    #[test]
    fn a_range_that_is_used_up_gives_nothing() {
        let number = |port| Taken::Port(i32::try_from(port).unwrap());
        let all = (1..4).map(number).collect();
        assert_eq!(draw(1..4, number, &all), None);
        assert_eq!(draw(1..5, number, &all), Some(Taken::Port(4)));
    }
}
