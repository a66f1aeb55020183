//! Allocates cluster IPs and node ports, at random among those that no other Service has (upstream: the storage of
//! Services).
//!
//! Several gateways may allocate concurrently. So each write with an allocation also writes one key, and commits only
//! if that key is unchanged since the values in use were read. Within a gateway, a lock serializes allocations.

mod address_ranges;
mod holders;

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use setpoint_codec::Object;
use setpoint_kinds::service::{families, uses_health_check, uses_node_ports};
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_proto::core::{Service, ServicePort, ServiceSpec};
use setpoint_proto::networking::ServiceCidr;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::AtLeast;
use setpoint_store::{self as store, Expect, Precondition, keys};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{Plugin, Reserving};
use crate::admission::reader::decode;
use crate::admission::{Attributes, Reader, Reservation};
use crate::service_ranges::ServiceRanges;
use address_ranges::AddressRanges;
use holders::Holders;

/// A value that only one Service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Assigned {
    ClusterIp(Ipv4Addr),
    NodePort(i32),
}

/// A range of values that are all taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    ClusterIps,
    NodePorts,
    HealthCheckNodePorts,
}

impl Full {
    /// Returns upstream's error for a Service.
    fn error(self, name: &str) -> ApiError {
        let what = match self {
            Self::ClusterIps => format!("a serviceIP for Service {name:?}"),
            Self::NodePorts => "a nodePort".to_owned(),
            Self::HealthCheckNodePorts => "a HealthCheck NodePort 0".to_owned(),
        };
        let message = format!("Internal error occurred: failed to allocate {what}: range is full");
        ApiError::new(Reason::InternalError, message)
    }
}

/// The timeout of waiting for the lock: the time that the store may need for one write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The plugin, with the lock that an allocation holds until its write has ended.
#[derive(Default)]
pub(super) struct ServiceIpAllocator {
    lock: Arc<Mutex<()>>,
    /// Those of the last allocation. Used while `lock` is held.
    holders: parking_lot::Mutex<Holders>,
    ranges: ServiceRanges,
}

impl Plugin for ServiceIpAllocator {
    /// Sets the families, the cluster IP and the node ports that a Service needs and the old one does not have.
    fn reserve<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        _at: AtLeast,
        reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        let service = object.downcast_mut::<Service>()?;
        let old = request.old.and_then(|old| old.downcast_ref::<Service>());
        Some(Box::pin(self.allocate(service, old, reader)))
    }
}

impl ServiceIpAllocator {
    pub(super) fn new(ranges: ServiceRanges) -> Self {
        Self {
            lock: Arc::default(),
            holders: parking_lot::Mutex::default(),
            ranges,
        }
    }

    /// Allocates the values that a Service needs.
    ///
    /// # Errors
    /// `Invalid` if it requests a value of another Service, `InternalError` if all values of a range are taken,
    /// `Timeout` if other allocations hold the lock too long.
    async fn allocate(
        &self,
        service: &mut Service,
        old: Option<&Service>,
        reader: &dyn Reader,
    ) -> Result<Reservation, ApiError> {
        let requested = service.clone();
        let mut errors = FieldErrors::default();
        families::complete(&mut service.spec, old.map(|old| &old.spec), &mut errors);
        errors.into_result(Object::kind(service), &service.metadata.name)?;
        let before = old.map(|old| assigned(&old.spec)).unwrap_or_default();
        let now = assigned(&service.spec);
        if !needs_allocation(&service.spec) && now.iter().all(|value| before.contains(value)) {
            return Ok(Reservation::default());
        }
        let guard = timeout(LOCK_TIMEOUT, self.lock.clone().lock_owned()).await;
        let guard = guard.map_err(|_| store::Error::Timeout)?;
        let last = reader.newest(keys::ALLOTTED).await?;
        let last = last.map(|entry| entry.revision);
        let taken = self.taken(&service.metadata.uid, reader).await?;
        let ranges = self.current(reader).await?;
        check(&ranges, service, &before, &taken)?;
        let assigned = assign(&ranges, &mut service.spec, taken);
        assigned.map_err(|full| full.error(&service.metadata.name))?;
        Ok(Reservation {
            preconditions: vec![Precondition {
                key: keys::ALLOTTED.into(),
                expect: last.map_or(Expect::Absent, Expect::At),
                put: Some(service.metadata.name.clone().into()),
            }],
            requested: Some(Box::new(requested)),
            guards: vec![guard],
            ..Reservation::default()
        })
    }

    /// Returns the values of all Services except the one with this uid. What a Service that cannot be read has is not
    /// free; what one had that was deleted is free at once, for `kubectl replace --force`.
    async fn taken(
        &self,
        except: &str,
        reader: &dyn Reader,
    ) -> Result<HashSet<Assigned>, ApiError> {
        let all = reader.all::<Service>("", AtLeast::Newest).await?;
        let mut holders = self.holders.lock();
        holders.update(all)?;
        Ok(holders.taken(except))
    }

    /// Returns the values that Services can have. The cache has all Services already, and with them all ServiceCIDRs of
    /// that revision.
    async fn current(&self, reader: &dyn Reader) -> Result<Ranges, ApiError> {
        let all = reader.all::<ServiceCidr>("", AtLeast::Any).await?;
        let all: Result<Vec<_>, _> = all.iter().map(|cached| decode(cached)).collect();
        let (range, first) = (self.ranges.range(), self.ranges.first());
        Ok(Ranges {
            addresses: AddressRanges::new(range, first, &all?),
            ports: self.ranges.ports.clone(),
        })
    }
}

/// The values that Services can have now.
struct Ranges {
    addresses: AddressRanges,
    ports: RangeInclusive<u16>,
}

/// Checks that the values of a Service are in range and not those of another one. Those of `before` are accepted.
///
/// # Errors
/// `Invalid` if they are not.
fn check(
    ranges: &Ranges,
    service: &Service,
    before: &[Assigned],
    taken: &HashSet<Assigned>,
) -> Result<(), ApiError> {
    let (spec, path) = (&service.spec, FieldPath::root("spec"));
    let mut errors = FieldErrors::default();
    if let Ok(address) = spec.cluster_ip.parse()
        && let Some(why) = refusal(ranges, Assigned::ClusterIp(address), before, taken)
    {
        let detail = format!("failed to allocate IP {address}: {why}");
        errors.invalid(&path.field("clusterIPs"), &spec.cluster_ips, detail);
    }
    let ports = path.field("ports");
    for (n, port) in spec.ports.iter().enumerate() {
        if let Some(why) = refusal(ranges, Assigned::NodePort(port.node_port), before, taken) {
            let entry = ports.index(n);
            errors.invalid(&entry.field("nodePort"), port.node_port, why);
        }
    }
    let check = spec.health_check_node_port;
    if let Some(why) = refusal(ranges, Assigned::NodePort(check), before, taken) {
        errors.invalid(&path.field("healthCheckNodePort"), check, why);
    }
    errors.into_result(Object::kind(service), &service.metadata.name)
}

fn refusal(
    ranges: &Ranges,
    value: Assigned,
    before: &[Assigned],
    taken: &HashSet<Assigned>,
) -> Option<String> {
    if before.contains(&value) || value == Assigned::NodePort(0) {
        return None;
    }
    let out_of_range = match value {
        Assigned::ClusterIp(address) => ranges.addresses.refusal(address),
        Assigned::NodePort(port) => {
            let (first, last) = ranges.ports.clone().into_inner();
            let in_range = u16::try_from(port).is_ok_and(|port| ranges.ports.contains(&port));
            let what = "provided port is not in the valid range. The range of valid ports is";
            (!in_range).then(|| format!("{what} {first}-{last}"))
        }
    };
    let what = match value {
        Assigned::ClusterIp(_) => "IP",
        Assigned::NodePort(_) => "port",
    };
    out_of_range.or_else(|| {
        let taken = taken.contains(&value);
        taken.then(|| format!("provided {what} is already allocated"))
    })
}

/// Returns whether the Service needs a value that it does not have.
fn needs_allocation(spec: &ServiceSpec) -> bool {
    let unassigned = |port: &ServicePort| port.node_port == 0;
    needs_cluster_ip(spec)
        || (uses_node_ports(spec) && spec.ports.iter().any(unassigned))
        || (uses_health_check(spec) && spec.health_check_node_port == 0)
}

fn needs_cluster_ip(spec: &ServiceSpec) -> bool {
    spec.cluster_ip.is_empty() && spec.r#type != "ExternalName"
}

/// Assigns the values that the Service needs and does not have.
fn assign(
    ranges: &Ranges,
    spec: &mut ServiceSpec,
    mut taken: HashSet<Assigned>,
) -> Result<(), Full> {
    if needs_cluster_ip(spec) {
        let is_free = |address: &_| !taken.contains(&Assigned::ClusterIp(*address));
        let address = ranges.addresses.free(is_free);
        spec.cluster_ip = address.ok_or(Full::ClusterIps)?.to_string();
        spec.cluster_ips = vec![spec.cluster_ip.clone()];
    }
    taken.extend(assigned(spec));
    let (node_ports, checked) = (uses_node_ports(spec), uses_health_check(spec));
    let ports = spec.ports.iter_mut().filter(|_| node_ports);
    let ports = ports.map(|port| (&mut port.node_port, Full::NodePorts));
    let check = &mut spec.health_check_node_port;
    let check = checked.then_some((check, Full::HealthCheckNodePorts));
    for (port, full) in ports.chain(check).filter(|(port, _)| **port == 0) {
        *port = free_port(ranges, &taken).ok_or(full)?;
        taken.insert(Assigned::NodePort(*port));
    }
    Ok(())
}

fn free_port(ranges: &Ranges, taken: &HashSet<Assigned>) -> Option<i32> {
    let ports = &ranges.ports;
    let ports = u32::from(*ports.start())..u32::from(*ports.end()) + 1;
    let mut ports = from_random(ports).filter_map(|port| i32::try_from(port).ok());
    ports.find(|port| !taken.contains(&Assigned::NodePort(*port)))
}

/// Returns all values of a range, beginning with a random one.
fn from_random(range: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
    let start = match range.is_empty() {
        true => range.start,
        false => rand::random_range(range.clone()),
    };
    (start..range.end).chain(range.start..start)
}

/// Returns the values that a Service has.
fn assigned(spec: &ServiceSpec) -> Vec<Assigned> {
    let address = spec.cluster_ip.parse().ok().map(Assigned::ClusterIp);
    let ports = spec
        .ports
        .iter()
        .map(|port| port.node_port)
        .chain([spec.health_check_node_port])
        .filter(|port| *port != 0);
    ports.map(Assigned::NodePort).chain(address).collect()
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

    fn ranges() -> Ranges {
        let ranges = ServiceRanges::default();
        Ranges {
            addresses: AddressRanges::new(ranges.range(), ranges.first(), &[]),
            ports: ranges.ports,
        }
    }

    #[test]
    fn each_service_gets_a_different_cluster_ip() {
        let mut taken = HashSet::new();
        for _ in 0..500 {
            let mut spec = spec("ClusterIP");
            assign(&ranges(), &mut spec, taken.clone()).unwrap();
            assert!(spec.cluster_ip.starts_with("10.96."));
            assert_eq!(spec.cluster_ips, [spec.cluster_ip.as_str()]);
            assert!(taken.insert(assigned(&spec)[0]), "assigned twice");
        }
    }

    #[test]
    fn node_ports_are_assigned_to_the_types_that_use_them() {
        let mut exposed = spec("NodePort");
        assign(&ranges(), &mut exposed, HashSet::new()).unwrap();
        let ports = [exposed.ports[0].node_port, exposed.ports[1].node_port];
        assert!(ports.iter().all(|port| (30_000..32_768).contains(port)));
        assert_ne!(ports[0], ports[1]);
        let mut plain = spec("ClusterIP");
        assign(&ranges(), &mut plain, HashSet::new()).unwrap();
        assert_eq!(plain.ports[0].node_port, 0);
    }

    #[test]
    fn headless_and_external_name_services_get_no_cluster_ip() {
        let mut headless = spec("ClusterIP");
        headless.cluster_ip = "None".into();
        headless.cluster_ips = vec!["None".into()];
        assign(&ranges(), &mut headless, HashSet::new()).unwrap();
        assert_eq!(headless.cluster_ips, ["None"]);
        let mut elsewhere = spec("ExternalName");
        assign(&ranges(), &mut elsewhere, HashSet::new()).unwrap();
        assert_eq!(elsewhere.cluster_ip, "");
    }

    /// A Service may keep its values even if they are out of range.
    #[test]
    fn a_value_out_of_range_or_of_another_service_is_refused() {
        let why = |port, before: &[i32], taken: &[i32]| {
            let ports = |ports: &[i32]| {
                ports
                    .iter()
                    .copied()
                    .map(Assigned::NodePort)
                    .collect::<Vec<_>>()
            };
            let taken = ports(taken).into_iter().collect();
            refusal(&ranges(), Assigned::NodePort(port), &ports(before), &taken)
        };
        let range =
            "provided port is not in the valid range. The range of valid ports is 30000-32767";
        assert_eq!(why(80, &[], &[]), Some(range.to_owned()));
        assert_eq!(why(80, &[80], &[]), None);
        assert_eq!(why(30_000, &[], &[30_001]), None);
        let taken = "provided port is already allocated";
        assert_eq!(why(30_000, &[], &[30_000]), Some(taken.to_owned()));
    }

    #[test]
    fn allocation_is_needed_for_values_that_the_type_uses_and_the_spec_lacks() {
        let with = |r#type: &str, address: &str, port, check| {
            let mut spec = spec(r#type);
            spec.cluster_ip = address.into();
            spec.external_traffic_policy = "Local".into();
            spec.ports
                .iter_mut()
                .for_each(|entry| entry.node_port = port);
            spec.health_check_node_port = check;
            needs_allocation(&spec)
        };
        assert!(with("ClusterIP", "", 0, 0));
        assert!(!with("ClusterIP", "10.96.0.1", 0, 0));
        assert!(!with("ExternalName", "", 0, 0));
        assert!(with("NodePort", "10.96.0.1", 0, 0));
        assert!(!with("NodePort", "10.96.0.1", 30_000, 0));
        assert!(with("LoadBalancer", "10.96.0.1", 30_000, 0));
        assert!(!with("LoadBalancer", "10.96.0.1", 30_000, 30_001));
    }

    /// Checks DG13: no Service goes without the values that its type needs.
    #[test]
    fn an_exhausted_range_is_an_error() {
        let text = |full: Result<(), Full>| full.unwrap_err().error("web").message;
        let number = Assigned::NodePort;
        let mut ports: HashSet<_> = (30_000..32_768).map(number).collect();
        let mut exposed = spec("NodePort");
        assert_eq!(
            text(assign(&ranges(), &mut exposed, ports.clone())),
            "Internal error occurred: failed to allocate a nodePort: range is full"
        );
        // Two ports are left, and a third is needed for the health check.
        let last = [number(30_000), number(32_767)];
        last.iter().for_each(|port| assert!(ports.remove(port)));
        let mut balanced = spec("LoadBalancer");
        balanced.external_traffic_policy = "Local".into();
        assert_eq!(
            text(assign(&ranges(), &mut balanced, ports.clone())),
            "Internal error occurred: failed to allocate a HealthCheck NodePort 0: range is full"
        );
        assert_eq!(assign(&ranges(), &mut exposed, ports), Ok(()));

        let network = Ipv4Addr::new(10, 96, 0, 0).to_bits();
        let host = |host| Assigned::ClusterIp(Ipv4Addr::from(network | host));
        let mut hosts: HashSet<_> = (2..(1 << 16) - 1).map(host).collect();
        let mut plain = spec("ClusterIP");
        assert_eq!(
            text(assign(&ranges(), &mut plain, hosts.clone())),
            "Internal error occurred: failed to allocate a serviceIP for Service \"web\": range is full"
        );
        hosts.remove(&host(300));
        assert_eq!(assign(&ranges(), &mut plain, hosts), Ok(()));
        assert_eq!(plain.cluster_ip, "10.96.1.44");
    }
}
