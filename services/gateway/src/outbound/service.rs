//! Finds the addresses of a port of a Service.
//!
//! A cluster IP leads to a Pod only where a proxy runs beside the gateway, so ready endpoints are called directly, and
//! the cluster IP only if the Service has no recorded endpoints.

use std::net::{IpAddr, SocketAddr};

use rand::seq::SliceRandom as _;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_proto::core::{Endpoints, Service, ServicePort};
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proto::{ApiError, Resource};
use setpoint_store::cache::{AtLeast, Cache, Filter};

/// The addresses that serve a Service.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// These addresses, in random order.
    Addresses(Vec<SocketAddr>),
    /// A name outside of the cluster, at the same port.
    Host(String),
}

/// Returns the addresses that serve a port of a Service.
///
/// # Errors
/// If it has no such port, or no ready endpoint.
pub(super) async fn resolve(cache: &Cache, name: &Key, port: u16) -> Result<Target, String> {
    let not_found = || format!("service {:?} not found", name.name);
    let service = get::<Service>(cache, name).await?.ok_or_else(not_found)?;
    if service.spec.r#type == "ExternalName" {
        return Ok(Target::Host(service.spec.external_name.clone()));
    }
    let named = |one: &&ServicePort| one.port == i32::from(port);
    let found = service.spec.ports.iter().find(named);
    let found =
        found.ok_or_else(|| format!("no service port {port} found for service {:?}", name.name))?;
    let Some(mut addresses) = endpoints(cache, name, &found.name).await? else {
        let ip = service.spec.cluster_ip.parse().ok();
        let address = ip.map(|ip: IpAddr| SocketAddr::new(ip, port));
        return address
            .map(|address| Target::Addresses(vec![address]))
            .ok_or_else(|| no_endpoints(name));
    };
    addresses.shuffle(&mut rand::rng());
    match addresses.is_empty() {
        true => Err(no_endpoints(name)),
        false => Ok(Target::Addresses(addresses)),
    }
}

fn no_endpoints(name: &Key) -> String {
    format!("no endpoints available for service {:?}", name.name)
}

/// Returns the ready endpoints of a port; `None` if those of the Service are not recorded.
async fn endpoints(
    cache: &Cache,
    name: &Key,
    port: &str,
) -> Result<Option<Vec<SocketAddr>>, String> {
    let all = Filter::all(kind_of::<EndpointSlice>(), name.namespace.as_str());
    let slices = cache.list(&all, AtLeast::Any).await.map_err(told)?.items;
    let slices: Vec<EndpointSlice> = slices
        .iter()
        .filter(|slice| slice.labels().get(SERVICE_NAME) == Some(&name.name))
        .filter_map(|slice| downcast(slice.decode().ok()?))
        .collect();
    if !slices.is_empty() {
        return Ok(Some(
            slices.iter().flat_map(|one| of_slice(one, port)).collect(),
        ));
    }
    let endpoints = get::<Endpoints>(cache, name).await?;
    Ok(endpoints.map(|endpoints| of_endpoints(&endpoints, port)))
}

fn of_slice(slice: &EndpointSlice, port: &str) -> Vec<SocketAddr> {
    let mut ports = slice.ports.iter();
    let port = ports.find(|one| one.name.as_deref().unwrap_or_default() == port);
    let Some(port) = port.and_then(|one| one.port) else {
        return Vec::new();
    };
    let ready = slice.endpoints.iter();
    let ready = ready.filter(|endpoint| endpoint.conditions.ready != Some(false));
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses);
    addresses.filter_map(|ip| socket(ip, port)).collect()
}

fn of_endpoints(endpoints: &Endpoints, port: &str) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for subset in &endpoints.subsets {
        for port in subset.ports.iter().filter(|one| one.name == port) {
            let addresses = subset.addresses.iter();
            found.extend(addresses.filter_map(|address| socket(&address.ip, port.port)));
        }
    }
    found
}

fn socket(ip: &str, port: i32) -> Option<SocketAddr> {
    Some(SocketAddr::new(ip.parse().ok()?, port.try_into().ok()?))
}

async fn get<T: Resource + 'static>(cache: &Cache, key: &Key) -> Result<Option<T>, String> {
    let found = cache.get(kind_of::<T>(), key, AtLeast::Any);
    let found = found.await.map_err(told)?;
    Ok(found.and_then(|found| downcast(found.decode().ok()?)))
}

fn downcast<T: 'static>(object: Box<dyn Object>) -> Option<T> {
    object.into_any().downcast().ok().map(|object| *object)
}

fn told(error: ApiError) -> String {
    error.message
}

#[cfg(test)]
mod tests {
    use setpoint_proto::discovery::{Endpoint, EndpointConditions, EndpointPort};

    use super::*;

    #[test]
    fn only_ready_endpoints_of_the_named_port_are_called() {
        let endpoint = |ip: &str, ready| Endpoint {
            addresses: vec![ip.into()],
            conditions: EndpointConditions {
                ready,
                ..Default::default()
            },
            ..Default::default()
        };
        let slice = EndpointSlice {
            endpoints: vec![
                endpoint("10.0.0.1", None),
                endpoint("10.0.0.2", Some(true)),
                endpoint("10.0.0.3", Some(false)),
                endpoint("nonsense", None),
            ],
            ports: vec![EndpointPort {
                name: Some("https".into()),
                port: Some(9443),
                ..Default::default()
            }],
            ..Default::default()
        };
        let expected: Vec<SocketAddr> = ["10.0.0.1:9443", "10.0.0.2:9443"]
            .map(|address| address.parse().unwrap())
            .into();
        assert_eq!(of_slice(&slice, "https"), expected);
        assert_eq!(of_slice(&slice, ""), []);
    }
}
