//! Allocation of addresses and node ports: at random among those that no other Service has.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use setpoint_codec::{Object, kinds};
use setpoint_proto::core::{Service, ServicePort, ServiceSpec};
use setpoint_proto::{ApiError, Resource as _};
use setpoint_store::{Expect, Precondition, keys};

use super::{families, uses_health_check, uses_node_ports};
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;
use crate::registry::{Allocation, AtLeast, Filter, Registry, errors};

/// 10.96.0.0/16, Kubernetes' usual range for Services.
const NETWORK: u32 = u32::from_be_bytes([10, 96, 0, 0]);
/// The numbers of hosts in it: all but the first and the last.
const HOSTS: std::ops::Range<u32> = 1..(1 << 16) - 1;
/// Kubernetes' usual range for ports of nodes.
const PORTS: std::ops::Range<u32> = 30_000..32_768;
/// A number that only one Service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Address(Ipv4Addr),
    Port(i32),
}

/// Allocates the address and the ports that a Service needs and `old` does not have; returns `None` if there are none.
///
/// # Errors
/// `Invalid` if it asks for a number of another Service.
pub(super) async fn allocate(
    service: &mut Service,
    old: Option<&Service>,
    registry: &Registry,
) -> Result<Option<Allocation>, ApiError> {
    let asked = service.clone();
    let mut errors = FieldErrors::default();
    families::settle(&mut service.spec, old.map(|old| &old.spec), &mut errors);
    errors.into_result(Object::kind(service), &service.metadata.name)?;
    let had = old.map(|old| numbers(&old.spec)).unwrap_or_default();
    let has = numbers(&service.spec);
    if !lacks(&service.spec) && has.iter().all(|number| had.contains(number)) {
        return Ok(None);
    }
    let turn = registry.turn().await?;
    let last = registry.store().get(keys::ALLOTTED).await?;
    let last = last.map(|entry| entry.revision);
    let at = last.map_or(AtLeast::Any, AtLeast::Revision);
    let taken = taken(registry, at, &service.metadata.uid).await?;
    check(service, &had, &taken)?;
    give(&mut service.spec, taken);
    let precondition = Precondition {
        key: keys::ALLOTTED.into(),
        expect: last.map_or(Expect::Absent, Expect::At),
        put: Some(service.metadata.name.clone().into()),
    };
    Ok(Some(Allocation::new(Box::new(asked), precondition, turn)))
}

/// Returns the numbers of all Services but the one with this uid.
async fn taken(registry: &Registry, at: AtLeast, but: &str) -> Result<BTreeSet<Taken>, ApiError> {
    let kind = kinds()
        .by_resource(Service::RESOURCE)
        .expect("its message is compiled in");
    let services = registry.cache().list(&Filter::all(kind, ""), at).await?;
    let mut taken = BTreeSet::new();
    for cached in services.items {
        let object = errors::readable(cached.decode())?;
        let service = object.downcast_ref::<Service>();
        if let Some(service) = service.filter(|service| service.metadata.uid != but) {
            taken.extend(numbers(&service.spec));
        }
    }
    Ok(taken)
}

/// Checks that the numbers of a Service are in range and not those of another. Those that it `had` are accepted.
///
/// # Errors
/// `Invalid` if they are not.
fn check(service: &Service, had: &[Taken], taken: &BTreeSet<Taken>) -> Result<(), ApiError> {
    let (spec, path) = (&service.spec, FieldPath::root("spec"));
    let mut errors = FieldErrors::default();
    if let Ok(address) = spec.cluster_ip.parse()
        && let Some(why) = refusal(Taken::Address(address), had, taken)
    {
        let detail = format!("failed to allocate IP {address}: {why}");
        errors.invalid(&path.field("clusterIPs"), &spec.cluster_ips, detail);
    }
    let ports = path.field("ports");
    for (n, port) in spec.ports.iter().enumerate() {
        if let Some(why) = refusal(Taken::Port(port.node_port), had, taken) {
            let entry = ports.index(n);
            errors.invalid(&entry.field("nodePort"), port.node_port, why);
        }
    }
    let check = spec.health_check_node_port;
    if let Some(why) = refusal(Taken::Port(check), had, taken) {
        errors.invalid(&path.field("healthCheckNodePort"), check, why);
    }
    errors.into_result(Object::kind(service), &service.metadata.name)
}

fn refusal(number: Taken, had: &[Taken], taken: &BTreeSet<Taken>) -> Option<&'static str> {
    let in_range = match number {
        Taken::Address(address) => HOSTS.contains(&(address.to_bits() ^ NETWORK)),
        Taken::Port(port) => port == 0 || u32::try_from(port).is_ok_and(|p| PORTS.contains(&p)),
    };
    match number {
        _ if had.contains(&number) => None,
        Taken::Address(_) if !in_range => {
            Some("provided IP is not in the valid range. The range of valid IPs is 10.96.0.0/16")
        }
        Taken::Port(_) if !in_range => {
            Some("provided port is not in the valid range. The range of valid ports is 30000-32767")
        }
        Taken::Address(_) if taken.contains(&number) => Some("provided IP is already allocated"),
        Taken::Port(_) if taken.contains(&number) => Some("provided port is already allocated"),
        _ => None,
    }
}

/// Returns whether the Service needs a number that it does not have.
fn lacks(spec: &ServiceSpec) -> bool {
    let unplugged = |port: &ServicePort| port.node_port == 0;
    wants_address(spec)
        || (uses_node_ports(spec) && spec.ports.iter().any(unplugged))
        || (uses_health_check(spec) && spec.health_check_node_port == 0)
}

fn wants_address(spec: &ServiceSpec) -> bool {
    spec.cluster_ip.is_empty() && spec.r#type != "ExternalName"
}

fn give(spec: &mut ServiceSpec, mut taken: BTreeSet<Taken>) {
    if wants_address(spec) {
        let address = |host| Taken::Address(Ipv4Addr::from(NETWORK | host));
        if let Some(Taken::Address(address)) = draw(HOSTS, address, &taken) {
            spec.cluster_ip = address.to_string();
            spec.cluster_ips = vec![spec.cluster_ip.clone()];
        }
    }
    taken.extend(numbers(spec));
    let (on_nodes, checked) = (uses_node_ports(spec), uses_health_check(spec));
    let ports = spec.ports.iter_mut().filter(|_| on_nodes);
    let ports = ports.map(|port| &mut port.node_port);
    let check = checked.then_some(&mut spec.health_check_node_port);
    for port in ports.chain(check).filter(|port| **port == 0) {
        let number = |port| Taken::Port(i32::try_from(port).unwrap_or_default());
        if let Some(given @ Taken::Port(number)) = draw(PORTS, number, &taken) {
            *port = number;
            taken.insert(given);
        }
    }
}

/// Returns the first free number after a random one; `None` if all are taken.
fn draw(
    range: std::ops::Range<u32>,
    as_taken: impl Fn(u32) -> Taken,
    taken: &BTreeSet<Taken>,
) -> Option<Taken> {
    let start = rand::random_range(range.clone());
    let round = (start..range.end).chain(range.start..start);
    round.map(as_taken).find(|number| !taken.contains(number))
}

fn numbers(spec: &ServiceSpec) -> Vec<Taken> {
    let address = spec.cluster_ip.parse().ok().map(Taken::Address);
    let ports = spec
        .ports
        .iter()
        .map(|port| port.node_port)
        .chain([spec.health_check_node_port])
        .filter(|port| *port != 0);
    ports.map(Taken::Port).chain(address).collect()
}

#[cfg(test)]
mod tests {
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
        let mut taken = BTreeSet::new();
        for _ in 0..500 {
            let mut spec = spec("ClusterIP");
            give(&mut spec, taken.clone());
            assert!(spec.cluster_ip.starts_with("10.96."));
            assert_eq!(spec.cluster_ips, [spec.cluster_ip.as_str()]);
            assert!(taken.insert(numbers(&spec)[0]), "given twice");
        }
    }

    #[test]
    fn ports_of_nodes_are_given_to_those_who_use_them() {
        let mut exposed = spec("NodePort");
        give(&mut exposed, BTreeSet::new());
        let ports = [exposed.ports[0].node_port, exposed.ports[1].node_port];
        assert!(ports.iter().all(|port| (30_000..32_768).contains(port)));
        assert_ne!(ports[0], ports[1]);
        let mut plain = spec("ClusterIP");
        give(&mut plain, BTreeSet::new());
        assert_eq!(plain.ports[0].node_port, 0);
    }

    #[test]
    fn whoever_needs_no_address_gets_none() {
        let mut headless = spec("ClusterIP");
        headless.cluster_ip = "None".into();
        headless.cluster_ips = vec!["None".into()];
        give(&mut headless, BTreeSet::new());
        assert_eq!(headless.cluster_ips, ["None"]);
        let mut elsewhere = spec("ExternalName");
        give(&mut elsewhere, BTreeSet::new());
        assert_eq!(elsewhere.cluster_ip, "");
    }

    /// A Service keeps what it had, be it out of range.
    #[test]
    fn a_number_is_refused_out_of_range_and_where_another_has_it() {
        let why = |port, had: &[i32], taken: &[i32]| {
            let ports = |ports: &[i32]| ports.iter().copied().map(Taken::Port).collect::<Vec<_>>();
            let taken = ports(taken).into_iter().collect();
            refusal(Taken::Port(port), &ports(had), &taken)
        };
        let range =
            "provided port is not in the valid range. The range of valid ports is 30000-32767";
        assert_eq!(why(80, &[], &[]), Some(range));
        assert_eq!(why(80, &[80], &[]), None);
        assert_eq!(why(30_000, &[], &[30_001]), None);
        let taken = "provided port is already allocated";
        assert_eq!(why(30_000, &[], &[30_000]), Some(taken));
    }

    #[test]
    fn a_service_lacks_what_it_uses_and_does_not_have() {
        let with = |r#type: &str, address: &str, port, check| {
            let mut spec = spec(r#type);
            spec.cluster_ip = address.into();
            spec.external_traffic_policy = "Local".into();
            spec.ports
                .iter_mut()
                .for_each(|entry| entry.node_port = port);
            spec.health_check_node_port = check;
            lacks(&spec)
        };
        assert!(with("ClusterIP", "", 0, 0));
        assert!(!with("ClusterIP", "10.96.0.1", 0, 0));
        assert!(!with("ExternalName", "", 0, 0));
        assert!(with("NodePort", "10.96.0.1", 0, 0));
        assert!(!with("NodePort", "10.96.0.1", 30_000, 0));
        assert!(with("LoadBalancer", "10.96.0.1", 30_000, 0));
        assert!(!with("LoadBalancer", "10.96.0.1", 30_000, 30_001));
    }

    #[test]
    fn a_range_that_is_used_up_gives_nothing() {
        let number = |port| Taken::Port(i32::try_from(port).unwrap());
        let all = (1..4).map(number).collect();
        assert_eq!(draw(1..4, number, &all), None);
        assert_eq!(draw(1..5, number, &all), Some(Taken::Port(4)));
    }
}
