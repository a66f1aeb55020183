//! Keeps the Service `default/kubernetes` with the addresses of the living gateways (upstream: the kubernetesservice
//! controller with the lease endpoint reconciler).
//!
//! A gateway that others can reach has a Lease in `kube-system`, which it renews; one that others cannot reach, as on a
//! loopback address, has none. All gateways compute the same endpoints from these Leases, so their writes agree. A
//! gateway that stops deletes its Lease. That of one that has crashed expires.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{SelectAll, select_all};
use jiff::Timestamp;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_model::replicas::ADDRESS;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service, ServicePort,
};
use setpoint_proto::discovery::{self, EndpointSlice};
use setpoint_proto::meta::{DeleteOptions, IntOrString};
use setpoint_proto::{ApiError, Reason};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::kept::{create_if_absent, keep, named};
use crate::registry::{
    AtLeast, Cached, Filter, Registry, RequestContext, Start, Target, Watch, WatchSpec,
};
use crate::server_info::ServerInfo;
use crate::write::current::Current;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
const PORT: i32 = 443;
const PORT_NAME: &str = "https";

/// The namespace of the Leases of gateways, with upstream's label.
pub(super) const LEASES: &str = "kube-system";
pub(super) const IDENTITY: &str = "apiserver.kubernetes.io/identity";
const IDENTITY_VALUE: &str = "kube-apiserver";
/// The time in seconds after its last renewal at which a Lease expires.
const LEASE_SECONDS: i32 = 45;

/// The interval of renewals and checks, as upstream's.
const INTERVAL: Duration = Duration::from_secs(10);
/// The delay before the watches are restarted.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// The time that deleting the own Lease may take when the gateway stops.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Keeps the Service and its endpoints until dropped.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "a watch of the Service kubernetes ended; restarting");
        }
        sleep(RESTART_DELAY).await;
    }
}

/// Deletes the Lease of this gateway, so that the others remove its address at once.
pub(crate) async fn release(registry: &Registry) {
    if registry.server().address.is_none() {
        return;
    }
    let target = Target::whole(kind_of::<Lease>(), &lease_key(registry.server()));
    let (context, options) = (context(), DeleteOptions::default());
    let deleted = registry.delete(&context, &target, &options);
    if let Ok(Err(error)) = tokio::time::timeout(RELEASE_TIMEOUT, deleted).await {
        tracing::debug!(%error, "deleting the Lease of this gateway failed; it will expire");
    }
}

/// Restores the objects when one of them or a Lease changes, and at intervals, until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let mut events = watch_all(registry).await?;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut starting = true;
    loop {
        let renew = tokio::select! {
            Some(event) = events.next() => event.map(|_| false)?,
            _ = ticks.tick() => true,
        };
        if renew && let Err(error) = renew_lease(registry).await {
            tracing::warn!(%error, "renewing the Lease of this gateway failed; trying again");
        }
        match restore(registry, starting).await {
            Ok(()) => starting = false,
            Err(error) => {
                tracing::warn!(%error, "restoring the Service kubernetes failed; trying again");
            }
        }
    }
}

async fn watch_all(registry: &Registry) -> Result<SelectAll<Watch>, ApiError> {
    let gateways = Selector::parse(&format!("{IDENTITY}={IDENTITY_VALUE}"));
    let gateways =
        gateways.map_err(|error| ApiError::new(Reason::BadRequest, error.to_string()))?;
    let none = Fields::default();
    let filters = [
        Filter::new(kind_of::<Lease>(), LEASES, gateways, &none)?,
        named(kind_of::<Service>(), NAMESPACE, NAME)?,
        named(kind_of::<Endpoints>(), NAMESPACE, NAME)?,
        named(kind_of::<EndpointSlice>(), NAMESPACE, NAME)?,
    ];
    let mut watches = Vec::new();
    for filter in filters {
        let spec = WatchSpec {
            filter,
            start: Start::Now,
            bookmarks: false,
        };
        watches.push(registry.cache().watch(spec).await?);
    }
    Ok(select_all(watches))
}

fn context() -> RequestContext {
    RequestContext::of_server().by("gateway")
}

fn lease_key(server: &ServerInfo) -> Key {
    // Gateways on one host have the same name, and different ports.
    let identity = format!("{}:{}", server.instance, server.port);
    let name = format!("apiserver-{:016x}", fnv(identity.as_bytes()));
    Key::new(LEASES, &name)
}

/// Returns the FNV-1a hash of a text, with which upstream makes names of identities, too.
fn fnv(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Renews the Lease of this gateway, or creates it. Does nothing if others cannot reach the gateway.
async fn renew_lease(registry: &Registry) -> Result<(), ApiError> {
    let server = registry.server();
    let Some(address) = server.address else {
        return Ok(());
    };
    let address = SocketAddr::new(address, server.port).to_string();
    let key = lease_key(server);
    let fill = |lease: &mut Lease| {
        let meta = &mut lease.metadata;
        meta.name.clone_from(&key.name);
        meta.labels.insert(IDENTITY.into(), IDENTITY_VALUE.into());
        meta.annotations.insert(ADDRESS.into(), address.clone());
        lease.spec.holder_identity = Some(server.instance.clone());
        lease.spec.lease_duration_seconds = Some(LEASE_SECONDS);
        lease.spec.renew_time = Some(Timestamp::now().into());
    };
    let target = Target::whole(kind_of::<Lease>(), &key);
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(lease) = new.downcast_mut::<Lease>() {
            fill(lease);
        }
        Ok(())
    };
    let context = context();
    let updated = registry.guaranteed_update(&context, &target, &mut mutate);
    match updated.await {
        Err(error) if error.reason == Reason::NotFound => {
            let mut lease = Lease::default();
            fill(&mut lease);
            create_if_absent(registry, &context, LEASES, lease).await
        }
        updated => updated.map(|_| ()),
    }
}

/// Creates the Service and its endpoints where they lack, and corrects the endpoints and the target port.
///
/// Gateways that others cannot reach do not know each other's ports, so they correct that of the Service only when they
/// start.
async fn restore(registry: &Registry, starting: bool) -> Result<(), ApiError> {
    let living = living(registry).await?;
    let port = living.keys().next().copied();
    let port = port.unwrap_or(registry.server().port);
    let knows_port = starting || !living.is_empty();
    let first = registry.service_ranges().first();
    let (wanted, context) = (service(port, first), context());
    let service = keep(registry, &context, NAMESPACE, wanted, |new, wanted| {
        if knows_port {
            new.spec.ports.clone_from(&wanted.spec.ports);
        }
    });
    let service = service.await.map(drop);
    let wanted = endpoints(&living);
    let endpoints = keep(registry, &context, NAMESPACE, wanted, |new, wanted| {
        new.subsets.clone_from(&wanted.subsets);
    });
    let wanted = slice(&living);
    let slice = keep(registry, &context, NAMESPACE, wanted, |new, wanted| {
        new.endpoints.clone_from(&wanted.endpoints);
        new.ports.clone_from(&wanted.ports);
    });
    let (endpoints, slice) = tokio::join!(endpoints, slice);
    service.and(endpoints.map(drop)).and(slice.map(drop))
}

/// Returns the addresses of the gateways with a Lease, by port.
async fn living(registry: &Registry) -> Result<BTreeMap<u16, BTreeSet<IpAddr>>, ApiError> {
    let all = Filter::all(kind_of::<Lease>(), LEASES);
    let leases = registry.cache().list(&all, AtLeast::Any).await?;
    let mut living = BTreeMap::<_, BTreeSet<_>>::new();
    for address in leases.items.iter().filter_map(|lease| address_of(lease)) {
        let addresses = living.entry(address.port()).or_default();
        addresses.insert(address.ip());
    }
    Ok(living)
}

/// Returns the address in the Lease of a gateway.
fn address_of(lease: &Cached) -> Option<SocketAddr> {
    if lease.labels().get(IDENTITY).map(String::as_str) != Some(IDENTITY_VALUE) {
        return None;
    }
    let lease = lease.decode().ok()?;
    lease.meta().annotations.get(ADDRESS)?.parse().ok()
}

fn service(port: u16, cluster_ip: Ipv4Addr) -> Service {
    let mut service = Service::default();
    service.metadata.name = NAME.into();
    service.metadata.labels = BTreeMap::from([
        ("provider".to_owned(), "kubernetes".to_owned()),
        ("component".to_owned(), "apiserver".to_owned()),
    ]);
    service.spec.ports = vec![ServicePort {
        name: PORT_NAME.into(),
        protocol: "TCP".into(),
        port: PORT,
        target_port: IntOrString::int(i32::from(port)),
        ..Default::default()
    }];
    service.spec.cluster_ip = cluster_ip.to_string();
    service.spec.ip_family_policy = Some("SingleStack".into());
    service.spec.session_affinity = "None".into();
    service.spec.r#type = "ClusterIP".into();
    service
}

fn endpoints(living: &BTreeMap<u16, BTreeSet<IpAddr>>) -> Endpoints {
    let mut endpoints = Endpoints::default();
    endpoints.metadata.name = NAME.into();
    // The EndpointSlice is ours, not a copy.
    let label = ("endpointslice.kubernetes.io/skip-mirror", "true");
    endpoints.metadata.labels = [(label.0.to_owned(), label.1.to_owned())].into();
    let subset = |(port, addresses): (&u16, &BTreeSet<IpAddr>)| EndpointSubset {
        addresses: addresses.iter().map(endpoint_address).collect(),
        ports: vec![EndpointPort {
            name: PORT_NAME.into(),
            port: i32::from(*port),
            protocol: "TCP".into(),
            app_protocol: None,
        }],
        ..Default::default()
    };
    endpoints.subsets = living.iter().map(subset).collect();
    endpoints
}

fn endpoint_address(ip: &IpAddr) -> EndpointAddress {
    EndpointAddress {
        ip: ip.to_string(),
        ..Default::default()
    }
}

/// Returns the slice. A slice has one list of ports, so it has the gateways with the lowest port, which the Service
/// names.
fn slice(living: &BTreeMap<u16, BTreeSet<IpAddr>>) -> EndpointSlice {
    let mut slice = EndpointSlice::default();
    slice.metadata.name = NAME.into();
    let label = (SERVICE_NAME.to_owned(), NAME.to_owned());
    slice.metadata.labels = [label].into();
    slice.address_type = "IPv4".into();
    let Some((port, addresses)) = living.iter().next() else {
        return slice;
    };
    slice.ports = vec![discovery::EndpointPort {
        name: Some(PORT_NAME.into()),
        protocol: Some("TCP".into()),
        port: Some(i32::from(*port)),
        app_protocol: None,
    }];
    let endpoint = |ip: &IpAddr| discovery::Endpoint {
        addresses: vec![ip.to_string()],
        conditions: discovery::EndpointConditions {
            ready: Some(true),
            ..Default::default()
        },
        ..Default::default()
    };
    let v4 = addresses.iter().filter(|address| address.is_ipv4());
    slice.endpoints = v4.map(endpoint).collect();
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_grouped_by_port() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = BTreeSet::from([address("10.0.0.2"), address("10.0.0.1")]);
        let living = BTreeMap::from([(6443, first), (6444, [address("10.0.0.3")].into())]);
        let endpoints = endpoints(&living);
        let ports = |subset: &EndpointSubset| subset.ports[0].port;
        let ports: Vec<_> = endpoints.subsets.iter().map(ports).collect();
        assert_eq!(ports, [6443, 6444]);
        assert_eq!(endpoints.subsets[0].addresses[0].ip, "10.0.0.1");
        let slice = slice(&living);
        assert_eq!(slice.ports[0].port, Some(6443));
        assert_eq!(slice.endpoints.len(), 2);
    }
}
